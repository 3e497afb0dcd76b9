"""Finding secrets in texts, and nothing else in them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.redact.rules import Format
from core.redact.text import redact, redact_value, secrets_in

PEM = "-----BEGIN RSA PRIVATE KEY-----"
PEM_END = "-----END RSA PRIVATE KEY-----"
DATA = "MIIEpAIBAAKCAQEA1c7Fh0xF2aVbq0yT3uJm9rWZ"


def token(prefix: str, size: int) -> str:
    """Something of the form of a token; made here, so that no scanner of repositories takes it for one."""
    return prefix + ("aB3dE5gH7jK9" * 12)[:size]


@pytest.mark.parametrize(
    ("kind", "secret"),
    [
        ("github-token", token("ghp_", 36)),
        ("github-token", token("github_pat_", 60)),
        ("anthropic-key", token("sk-ant-", 40)),
        ("openai-key", token("sk-proj-", 60)),
        ("api-key", token("sk-", 48)),
        ("aws-key", "AKIA" + "Q7" * 8),
        ("google-key", token("AIza", 35)),
        ("google-token", token("ya29.", 60)),
        ("gitlab-token", token("glpat-", 20)),
        ("slack-token", "xoxb-" + "12345678901-" * 2 + "aB3dE5gH7jK9"),
        ("stripe-key", token("sk_live_", 24)),
        ("sendgrid-key", "SG." + "aB3dE5gH7jK9aB3dE5gH7j." + "aB3dE5gH7jK9" * 3),
        ("npm-token", token("npm_", 36)),
        ("pypi-token", token("pypi-AgE", 80)),
        ("sentry-token", token("sntrys_", 70) + "=="),
    ],
)
def test_a_token_is_known_by_the_prefix_that_its_issuer_gave_it(kind: str, secret: str) -> None:
    text = f"use '{secret}', please"
    hits = secrets_in(text)

    assert redact(text) == f"use '[REDACTED:{kind}]', please"
    assert [h.kind for h in hits] == [kind]
    assert secret not in hits[0].masked
    assert hits[0].masked.endswith(f"… ({len(secret)} characters)")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("DB=postgres://svc:hunter2@db.example.test/x", "DB=postgres://svc:[REDACTED:url-password]@db.example.test/x"),
        ("Authorization: Bearer abcdef12", "Authorization: Bearer [REDACTED:authorization]"),
        ("'Authorization': 'Basic dXNlcjpwYXNz'", "'Authorization': 'Basic [REDACTED:authorization]'"),
        ("got bearer q8Zr2Lm5Xw7Kp1Vn4Ty6 back", "got bearer [REDACTED:authorization] back"),
        ("DB_PASSWORD=correcthorse", "DB_PASSWORD=[REDACTED:password]"),
        ("DB_PASS='hunter2x'", "DB_PASS='[REDACTED:password]'"),
        ("MYSQL_PWD=hunter2x", "MYSQL_PWD=[REDACTED:password]"),
        ("password: hunter2.", "password: [REDACTED:password]."),
        ("the password is hunter2!", "the password is [REDACTED:password]!"),
        ("mysql --password hunter2 -e x", "mysql --password [REDACTED:password] -e x"),
        ('{\\"password\\": \\"hunter2\\"}', '{\\"password\\": \\"[REDACTED:password]\\"}'),
        ("Server=db;Password=hunter2;", "Server=db;Password=[REDACTED:password];"),
        ("machine h login me password hunter2", "machine h login me password [REDACTED:netrc-password]"),
        ("API_KEY=q8Zr2Lm5Xw7Kp1Vn4T", "API_KEY=[REDACTED:key]"),
        ("API_KEY_PROD=q8Zr2Lm5Xw7Kp1Vn4T", "API_KEY_PROD=[REDACTED:key]"),
        ('apiKey: "q8Zr2Lm5Xw7Kp1Vn4T"', 'apiKey: "[REDACTED:key]"'),
        ("aws_secret_access_key = /8Zr2Lm5Xw7Kp1Vn4Ty6Bc9Df3Gh0Jq+Sa/Ue", "aws_secret_access_key = [REDACTED:key]"),
        ("client_secret => 'q8Zr2Lm5Xw7Kp1Vn'", "client_secret => '[REDACTED:secret]'"),
        ("?access_token=q8Zr2Lm5Xw7Kp1Vn&page=2", "?access_token=[REDACTED:token]&page=2"),
        (
            "https://hooks.slack.com/services/T0AAAA/B0AAAA/aB3dE5gH7j",
            "https://hooks.slack.com/services/[REDACTED:slack-webhook]",
        ),
        ("123456789:AA" + "b" * 33 + " bot", "123456789:[REDACTED:telegram-token] bot"),
        ("?sv=1&sig=" + "aB3%2F" * 9 + "%3D&x", "?sv=1&sig=[REDACTED:azure-signature]&x"),
    ],
)
def test_a_value_is_known_by_its_label_or_its_place_and_the_label_stays(before: str, after: str) -> None:
    assert redact(before) == after


@pytest.mark.parametrize(
    "text",
    [
        "PORT=8443",
        "SHA=0123456789abcdef0123456789abcdef01234567",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "id 1b4e28ba-2fa1-11d2-883f-0016d3cca427, token: 1b4e28ba-2fa1-11d2-883f-0016d3cca427",
        "max_tokens=8443, input_tokens: 123456789012345678",
        "TOKEN_BUDGET=200000",
        "password=get_password()",
        "password: str",
        "password = user.password",
        "password: string // at least 8",
        "passwords are hashed; the password is required",
        "PASSWORD=${DB_PASSWORD:-postgres}",
        "PASSWORD=<your password>",
        "PASSWORD=changeme",
        "token = os.environ['TOKEN']",
        'api_key = "YOUR_API_KEY_GOES_HERE"',
        'api_key = "..."',
        "secret: /run/secrets/db_password_1",
        "secretName: https://vault.example.test/v1/secret1",
        "PWD=/home/someone/project1",
        "primary_key=q8Zr2Lm5Xw7Kp1Vn4T",
        "--- PASS: TestOptions/enabled_true (0.02s)",
        "postgres://user:password@localhost/x",
        "https://example.test:8443/a@b",
        "git@github.com:owner/name.git",
        "Authorization: Bearer $TOKEN",
        "Authorization: Bearer xxxxxxxxxxxxxxxx",
        "the bearer of good news12 is here",
        "hf_transfer_is_the_name_of_a_package_and_not_a_token",
        "task-0123456789abcdef0123456789abcdef",
        "AKIA" + "Q7" * 12,
        "eyJhbGciOiJIUzI1NiJ9",
        "eyJhbGciOiJI.eyJzdWIi",
        f"{PEM} starts a private key, {PEM_END} ends it",
        f"{PEM}\nyour key here\n{PEM_END}",
        "",
    ],
)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert secrets_in(text) == []
    assert redact(text) == text


def test_a_private_key_goes_with_its_first_and_last_line() -> None:
    assert redact(f"a\n{PEM}\nProc-Type: 4,ENCRYPTED\n\n{DATA}\n{DATA}==\n{PEM_END}\nb") == (
        "a\n[REDACTED:private-key]\nb"
    )


def test_a_private_key_is_found_in_numbered_lines_and_within_a_string() -> None:
    numbered = f"     1→{PEM}\n     2→{DATA}\n     3→{PEM_END}\n"

    assert redact(numbered) == "     1→[REDACTED:private-key]\n"
    assert redact(f'"{PEM}\\n{DATA}\\n{PEM_END}\\n"') == '"[REDACTED:private-key]\\n"'


def test_a_private_key_that_was_cut_off_goes_as_far_as_its_lines() -> None:
    assert redact(f"{PEM}\n{DATA}\n{DATA}\n[cut]") == "[REDACTED:private-key]\n[cut]"


def test_a_private_key_of_more_lines_than_any_has_is_cut_there() -> None:
    text = f"{PEM}\n" + f"{DATA}\n" * 2_500

    assert redact(text).startswith("[REDACTED:private-key]\nMII")
    assert len(secrets_in(text)) == 1


def test_a_web_token_is_found_whole() -> None:
    jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"

    assert redact(f"cookie={jwt};") == "cookie=[REDACTED:jwt];"
    assert redact(f"x\\n{jwt}") == "x\\n[REDACTED:jwt]"
    assert secrets_in(f"x{jwt}") == []


def test_a_token_is_found_behind_an_escaped_line_end() -> None:
    secret = token("ghp_", 36)

    assert redact(f"a\\n{secret}\\n") == "a\\n[REDACTED:github-token]\\n"


def test_a_token_is_found_behind_a_word_and_a_hyphen() -> None:
    secret = token("ghp_", 36)

    assert redact(f"ci-{secret}.{secret}") == "ci-[REDACTED:github-token].[REDACTED:github-token]"


def test_overlapping_finds_are_one_mark_of_the_more_exact_kind() -> None:
    secret = token("sk-ant-", 40)

    text = f"Authorization: Bearer {secret}~more and API_KEY={secret}"

    assert redact(text) == "Authorization: Bearer [REDACTED:anthropic-key] and API_KEY=[REDACTED:anthropic-key]"
    assert [h.shown for h in secrets_in(text)] == ["sk-ant-", "sk-ant-"]


def test_the_places_of_hits_are_those_in_the_old_text() -> None:
    text = "a PASSWORD=hunter22 b TOKEN=q8Zr2Lm5Xw7Kp1Vn c"

    assert [text[h.start : h.end] for h in secrets_in(text)] == ["hunter22", "q8Zr2Lm5Xw7Kp1Vn"]


def test_a_field_is_known_by_its_name_alone() -> None:
    assert redact_value("hunter2", "db_password")[0] == "[REDACTED:password]"
    assert redact_value("q8Zr2Lm5Xw7Kp1Vn", "apiKey")[0] == "[REDACTED:key]"
    assert redact_value("hunter2", "username")[0] == "hunter2"
    assert redact_value("hunter2", "password_hint_url")[0] == "hunter2"
    assert redact_value("a long story, 7 words of it", "secret")[0] == "a long story, 7 words of it"
    assert redact_value("hunter2" * 100, "password")[0] == "hunter2" * 100


PIECES = st.sampled_from(
    [
        token("ghp_", 36), "AKIA" + "Q7" * 8, "password", "PASSWORD", "token", "api_key", "=",
        ": ", "'", '"', "\\n", "\n",
        " ", "hunter2", "q8Zr2Lm5Xw7Kp1Vn4T", "://u:", "@", PEM, PEM_END, DATA, "eyJhbGciOi.", "Bearer ",
        "Authorization", "[REDACTED:password]", "é", "→", "--", "login a password ",
    ]
)  # fmt: skip


@given(st.lists(st.one_of(PIECES, st.text(max_size=5)), max_size=20).map("".join))
def test_redacting_twice_changes_nothing_and_only_marks_are_put_in(text: str) -> None:
    once, hits = redact(text), secrets_in(text)

    assert (redact(once), secrets_in(once)) == (once, [])
    assert all(a.end <= b.start for a, b in pairwise(hits))
    kept = "".join(
        text[a:b] for a, b in zip([0, *(h.end for h in hits)], [*(h.start for h in hits), None], strict=True)
    )
    for hit in hits:
        once = once.replace(f"[REDACTED:{hit.kind}]", "", 1)
    assert once.replace("[REDACTED:password]", "") == kept.replace("[REDACTED:password]", "")


@pytest.mark.parametrize(
    "piece", ["a", "eyJ", "password=", "SECRET_", PEM + "\n", "://a:", "api_key:'", "login a password ", "x=\\n"]
)
def test_work_grows_with_the_text_and_not_faster(piece: str) -> None:
    """Counts the calls that finding makes, instead of seconds: twice the text, at most about twice the calls."""
    import sys

    def calls(text: str) -> int:
        count = 0

        def note(frame: object, event: str, arg: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(note)
        try:
            secrets_in(text)
        finally:
            sys.setprofile(None)
        return count

    small, large = (calls(piece * (size // len(piece))) for size in (5_000, 10_000))
    assert large <= 2.2 * small + 200


@pytest.mark.parametrize(
    "piece", ["sk-ant-", "xoxb-", "glsa_aB3dE5gH7jK9aB3dE5gH7jK9aB3dE5gH7jK9/", "glc_" + "a" * 30 + "/"]
)
def test_no_part_of_a_text_is_looked_at_again_and_again_for_a_format(
    piece: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = 0
    end = Format.end

    def counted(form: Format, text: str, at: int) -> tuple[int, bool]:
        nonlocal looked_at
        found = end(form, text, at)
        looked_at += found[0] - at
        return found

    monkeypatch.setattr(Format, "end", counted)
    text = piece * 1_000
    secrets_in(text)

    assert len(text) // 2 < looked_at < 4 * len(text)


def test_a_token_behind_names_that_look_like_its_beginning_is_found() -> None:
    name = "sk-ant-" * 4
    for secret in (token("sk-ant-", 40), token("glpat-", 20)):
        assert redact(f"{name} {secret}, {name}.{secret}").count("[REDACTED:") == 2
