"""Secrets of sessions: listed, and left out of copies and of all that is stored."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import WriteFailed, WrongFormat
from core.model import JSON, Block, Message
from core.redact.text import secrets_in
from core.redact.values import redact_messages
from core.service import operation as operation_module
from core.service.history import output, search
from core.service.operation import Target
from core.service.redact import RedactResult, find_secrets, redact_session
from core.service.session import opened
from core.service.stages import run_stages
from core.service.undo import undo
from core.stages.receipt import receipt
from core.stages.tool_budget import ToolBudget
from core.testing import Transcript
from core.transcript.page import Body
from core.transcript.projects import session_file
from core.transcript.redacted import redact_stored
from core.transcript.store import Store
from tests.disk import compacted, messages, on_disk, rows, tree
from tests.sessions import transcripts

DATA = Path(__file__).parents[1] / "data"
SECRETS = ("ghp_EX", "sk-ant-EX", "p4ssw0rd", "AKIAEX", "hunter2", "MIIEX", "PRIVATE KEY")
TOKEN = "ghp_" + "aB3dE5gH7jK9" * 3


@pytest.fixture
def case(tmp_path: Path) -> Path:
    """The session of a person who pasted a token, and of a tool that printed more of them."""
    path = tmp_path / "projects" / "-srv-app" / "11111111-1111-4111-8111-111111111111.jsonl"
    path.parent.mkdir(parents=True)
    shutil.copy(DATA / "cases" / "secret-1.jsonl", path)
    return path


@pytest.fixture
def long_case(case: Path) -> Path:
    """The same, with so long an answer that a compaction is worth its while."""
    case.write_bytes(case.read_bytes().replace(b'"Loaded."', b'"' + b"Loaded that file. " * 1_000 + b'"'))
    return case


def leaks(folder: Path, *but: Path) -> list[str]:
    """Secrets in the files below a folder."""
    files = (p for p in folder.rglob("*") if p.is_file() and p not in but)
    return [f"{s} in {p.name}" for p in files for s in SECRETS if s.encode() in p.read_bytes()]


def redacted(path: Path) -> RedactResult:
    return redact_session(session_file(path))


def test_all_places_of_secrets_are_listed_and_none_is_shown(case: Path) -> None:
    result = find_secrets(session_file(case))

    assert [(f.kind, f.where, f.id, f.line) for f in result.findings] == [
        ("github-token", "text", "00000000-0000-4000-8000-000000000001", 1),
        ("anthropic-key", "tool input", "toolu_env", 2),
        ("url-password", "tool input", "toolu_env", 2),
        ("aws-key", "toolUseResult", "00000000-0000-4000-8000-000000000003", 3),
        ("url-password", "toolUseResult", "00000000-0000-4000-8000-000000000003", 3),
        ("private-key", "toolUseResult", "00000000-0000-4000-8000-000000000003", 3),
        ("aws-key", "tool result", "toolu_env", 3),
        ("url-password", "tool result", "toolu_env", 3),
        ("private-key", "tool result", "toolu_env", 3),
    ]
    assert not [s for s in SECRETS if s in str(result.to_json())]
    assert result.output == ""
    assert tree(case.parent) == {case.name: case.read_bytes()}


def test_the_copy_has_the_same_rows_a_new_id_and_no_secrets(case: Path) -> None:
    before = case.read_bytes()

    result = redacted(case)

    copy = Path(result.output)
    assert result.changed
    assert copy.stem == result.output_id != case.stem
    assert case.read_bytes() == before
    assert leaks(case.parent, case) == []
    assert [r.get("uuid") for r in rows(copy)[1:-1]] == [r["uuid"] for r in map(json.loads, before.splitlines())]
    assert {r["sessionId"] for r in rows(copy)} == {result.output_id}
    assert messages(copy) == redact_messages(messages(case))
    assert "PORT=8443\\nSHA=0123456789abcdef0123456789abcdef01234567" in copy.read_text()
    assert rows(copy)[-1]["customTitle"] == "redacted: My token is [REDACTED:github-token] use it."
    assert find_secrets(session_file(copy)).findings == []


def test_the_copy_is_made_once_and_undo_removes_it(case: Path) -> None:
    before = tree(case.parent)
    first = redacted(case)

    again = redacted(case)
    assert (again.changed, again.reason, again.output) == (False, "the same was written before", first.output)
    nothing = redacted(Path(first.output))
    assert (nothing.changed, nothing.reason, nothing.output) == (False, "it holds no secrets that Foldmark knows", "")

    undo(session_file(Path(first.output)), case.parents[2], case.parent.parent / "locks")
    assert tree(case.parent) == before


def test_what_was_left_out_is_not_found_from_the_copy(case: Path) -> None:
    copy = Path(redacted(case).output)

    with opened(session_file(copy), whole=True) as session:
        assert search(session, "hunter2").hits == []
        assert "[REDACTED:aws-key]" in output(session, "toolu_env").text


def test_a_compaction_keeps_secrets_out_of_all_that_it_writes(long_case: Path) -> None:
    result = compacted(long_case, instructions="keep PASSWORD=hunter2")

    page = next(p for p in long_case.parent.rglob("compacted-*.md"))
    assert result.changed
    assert leaks(long_case.parent, long_case) == []
    assert "AWS_ACCESS_KEY_ID=[REDACTED:aws-key]" in page.read_text()
    assert "My token is [REDACTED:github-token] use it." in Path(result.output).read_text()
    assert "PORT=8443" in page.read_text()
    assert "SHA=0123456789abcdef0123456789abcdef01234567" in page.read_text()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


def test_a_compaction_of_a_compaction_keeps_secrets_of_the_earlier_summary_out(case: Path) -> None:
    made = Transcript().boundary("Earlier: PASSWORD=hunter2").prompt("Go on.").answer("Done. " * 4_000)
    path = made.write(case.parent / "second.jsonl")

    result = compacted(path)

    assert result.changed
    assert leaks(case.parent, case, path) == []


def test_kept_messages_and_an_older_row_keep_what_they_say(case: Path) -> None:
    made = Transcript().prompt(f"a {TOKEN} b").answer("old " * 3_000).prompt(f"keep {TOKEN}").answer("ok")
    path = made.write(case.parent / "kept.jsonl")

    result = compacted(path, 100, in_place=True)

    assert result.changed
    assert [b.get("text") for m in messages(path)[1:] for b in m.content] == [f"keep {TOKEN}", "ok"]
    with opened(session_file(path), whole=True) as session:
        assert TOKEN in output(session, str(made.rows[0]["uuid"])).text


def test_stored_outputs_are_listed_and_copied_without_secrets(long_case: Path) -> None:
    compaction = compacted(long_case)
    path = Path(compaction.output)
    store = Store.beside(path)
    page = next(store.folder.glob("compacted-*.md"))
    (store.folder / "toolu_big.txt").write_text(f"first\nmy {TOKEN}\n")
    (store.folder / "toolu_env2.txt").write_bytes(b"\xff no secrets")
    store.put("pic", {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}})

    result = redacted(path)

    copied = Store.beside(Path(result.output))
    assert [(f.where, f.file, f.id, f.line) for f in result.findings] == [
        ("stored output", "toolu_big.txt", "toolu_big", 2)
    ]
    assert {b.id for b in copied.bodies()} == {b.id for b in store.bodies()}
    assert {b.id: copied.read(b) for b in copied.bodies()}["toolu_big"] == b"first\nmy [REDACTED:github-token]\n"
    assert (copied.folder / page.name).read_bytes() == page.read_bytes()
    assert all(copied.read(body) for body in copied.bodies())
    assert (copied.folder / "toolu_env2.txt").read_bytes() == b"\xff no secrets"
    assert stat.S_IMODE((copied.folder / "toolu_big.txt").stat().st_mode) == 0o600

    undo(session_file(Path(result.output)), long_case.parents[2], long_case.parent.parent / "locks")
    assert not copied.folder.exists()


def test_rows_name_the_stored_outputs_of_the_copy(case: Path) -> None:
    made = Transcript().prompt(TOKEN).use("Bash", "out", command="ls")
    old = f"/home/a/.claude/projects/x/{made.session_id}/tool-results/toolu_1.txt"
    made.rows[-1]["toolUseResult"] = {"persistedOutputPath": old}

    result = redacted(made.write(case))

    stored = rows(result.output)[3]["toolUseResult"]
    assert stored == {"persistedOutputPath": old.replace(made.session_id, result.output_id)}


def test_thinking_goes_from_the_first_changed_message_on_and_the_chain_stays_whole(case: Path) -> None:
    made = (
        Transcript()
        .prompt("hello")
        .answer("one", thinking="kept")
        .prompt(TOKEN)
        .use("Bash", "out", thinking="lost", command="ls")
        .answer("two", thinking="lost too")
    )
    kept = [str(r["uuid"]) for r in made.rows[-4:]]
    made.boundary("s", kept)
    metadata = made.rows[-2]["compactMetadata"]
    assert isinstance(metadata, dict)
    metadata["preservedSegment"] = {"headUuid": kept[2], "anchorUuid": kept[0], "tailUuid": kept[2]}
    made.beside("last-prompt", lastPrompt="x", leafUuid=kept[2])

    copy = rows(redacted(made.write(case)).output)[1:]

    said = [
        b
        for r in copy
        if isinstance(m := r.get("message"), dict) and isinstance(m["content"], list)
        for b in m["content"]
    ]
    assert [b.get("thinking") for b in said if isinstance(b, dict) and b["type"] == "thinking"] == ["kept"]
    there = {r["uuid"] for r in copy if "uuid" in r}
    assert {r.get("parentUuid") for r in copy if "uuid" in r} <= {None, *there}
    boundary = next(r for r in copy if r.get("subtype") == "compact_boundary")
    assert boundary["compactMetadata"] == {
        "trigger": "auto",
        "preTokens": metadata["preTokens"],
        "preservedMessages": {
            "anchorUuid": copy[-3]["uuid"],
            "uuids": [u for u in kept if u in there],
            "allUuids": [u for u in kept if u in there],
        },
        "preservedSegment": {"headUuid": kept[3], "anchorUuid": kept[0], "tailUuid": kept[1]},
    }
    assert next(r for r in copy if r["type"] == "last-prompt")["leafUuid"] == kept[1]


def test_thinking_with_a_secret_goes_itself(case: Path) -> None:
    made = Transcript().prompt("hello").answer("one", thinking=f"the token is {TOKEN}")

    result = redacted(made.write(case))

    assert [f.where for f in result.findings] == ["thinking"]
    assert [[b["type"] for b in m.content] for m in messages(result.output)] == [["text"], ["text"]]


def test_a_row_that_stands_twice_is_hung_off_where_it_is(case: Path) -> None:
    made = Transcript().prompt(TOKEN).answer("one", thinking="x").prompt("two")
    thinking = made.rows[1]
    made.rows.insert(2, {**thinking, "message": {**thinking["message"], "content": [{"type": "text", "text": "y"}]}})  # type: ignore[dict-item]

    copy = rows(redacted(made.write(case)).output)[1:]

    assert [r.get("parentUuid") for r in copy[1:3]] == [copy[0]["uuid"], thinking["uuid"]]


def test_lines_that_are_no_rows_are_redacted_as_text_or_left_out(case: Path) -> None:
    rest = f'{{"torn": "{TOKEN}\nnull\n\n[1]\n\xff plain\n{{"type":"summary","summary":"PASSWORD=hunter2"}}'
    path = case.parent / "torn.jsonl"
    path.write_bytes(case.read_bytes() + rest.encode("latin-1"))

    result = redacted(path)

    lines = Path(result.output).read_bytes().split(b"\n")
    assert lines[6:9] == [
        b'{"torn": "[REDACTED:github-token]',
        b"\xff plain",
        b'{"type":"summary","summary":"PASSWORD=[REDACTED:password]"}',
    ]
    assert [(f.where, f.id) for f in result.findings[-2:]] == [("unreadable row", ""), ("summary", "")]


def test_attachments_are_looked_through(case: Path) -> None:
    made = Transcript().prompt("x").attachment("environment", f"env {TOKEN}").answer("ok", thinking="lost")

    result = redacted(made.write(case))

    assert [f.where for f in result.findings] == ["attachment"]
    assert "thinking" not in str(rows(result.output))


def test_rows_that_were_added_meanwhile_are_no_part_of_the_copy(case: Path) -> None:
    file = session_file(case)
    with case.open("ab") as more:
        more.write(b'{"type":"user","uuid":"late"}\n')

    assert len(rows(redact_session(file).output)) == 7


def test_of_other_clients_secrets_are_listed_but_no_copy_is_made(tmp_path: Path) -> None:
    document = tmp_path / "request.json"
    document.write_text(json.dumps({"messages": [{"role": "user", "content": f"use {TOKEN}"}]}, indent=1))
    sample = (DATA / "foreign" / "codex" / "sample.jsonl").read_text()
    lines = tmp_path / "rollout.jsonl"
    lines.write_text(sample + json.dumps({"type": "x", "payload": {"text": f"use {TOKEN}"}}) + "\n")

    assert [(f.kind, f.where, f.line) for f in find_secrets(session_file(document)).findings] == [
        ("github-token", "messages", 1)
    ]
    assert [(f.where, f.line) for f in find_secrets(session_file(lines)).findings] == [
        ("payload", sample.count("\n") + 1)
    ]
    with pytest.raises(WrongFormat, match="not a Claude Code transcript"):
        redacted(document)


def test_a_copy_that_cannot_be_written_leaves_nothing(long_case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(compacted(long_case).output)
    (Store.beside(path).folder / "toolu_x.txt").write_text(TOKEN)
    before = tree(long_case.parent)

    def full(*_: object) -> None:
        raise WriteFailed("disk full")

    monkeypatch.setattr(operation_module, "write_new", full)
    with pytest.raises(WriteFailed):
        redacted(path)
    assert tree(long_case.parent) == before


def test_a_copy_that_another_process_wrote_keeps_its_store(long_case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(compacted(long_case).output)
    (Store.beside(path).folder / "toolu_x.txt").write_text(TOKEN)

    def late(target: Path, pieces: object) -> None:
        target.write_bytes(b"")
        raise WriteFailed("there")

    monkeypatch.setattr(operation_module, "write_new", late)
    with pytest.raises(WriteFailed):
        redacted(path)
    assert len([*long_case.parent.glob("*/tool-results/toolu_x.txt")]) == 2


def test_a_stored_file_that_is_gone_is_passed_over(long_case: Path) -> None:
    path = Path(compacted(long_case).output)
    next(Store.beside(path).folder.glob("compacted-*.md")).unlink()

    assert find_secrets(session_file(path)).findings == []


def test_bodies_within_bodies_are_found_at_their_new_places() -> None:
    raw = f"# head {TOKEN}\n{TOKEN}\nresult {TOKEN}\nend\n".encode()
    outer_at = raw.index(b"\n") + 1
    inner_at = raw.index(b"result")

    def body(ident: str, start: int, end: int, kind: str = "result") -> Body:
        return Body(ident, kind, "", "p.md", start, end - start, 1, 1, "")

    bodies = [
        body("outer", outer_at, len(raw)),
        body("inner", inner_at, raw.index(b"\nend")),
        body("empty", inner_at, inner_at),
        body("damaged", 5, len(raw) + 1),
    ]
    stored = redact_stored(raw, bodies)

    read = {b.id: stored.content[b.offset : b.offset + b.size] for b in stored.bodies}
    assert read == {
        "outer": b"[REDACTED:github-token]\nresult [REDACTED:github-token]\nend\n",
        "inner": b"result [REDACTED:github-token]",
        "empty": b"",
    }
    assert [(b.line, b.lines) for b in stored.bodies] == [(2, 3), (3, 1), (3, 0)]
    assert [(ident, line) for ident, line, _ in stored.hits] == [("", 1), ("outer", 2), ("inner", 3)]
    picture = redact_stored(raw, [body("m", 0, len(raw), "image")])
    assert (picture.content, picture.hits) == (raw, [])


PLACES = st.lists(st.tuples(st.integers(0, 60), st.sampled_from([f" {TOKEN} ", "\nPASSWORD=hunter2\n"])), max_size=4)


@settings(max_examples=60)
@given(made=transcripts(), places=PLACES)
def test_a_copy_says_what_its_source_says_without_secrets_and_late_thinking(
    made: Transcript, places: list[tuple[int, str]]
) -> None:
    for place, secret in places:
        _put(made.rows[place % len(made.rows)], secret)
    with on_disk(made) as path:
        result = redacted(path)
        listed = find_secrets(session_file(path)).findings
        assert path.read_bytes() == made.data()
        assert result.changed == bool(listed)
        if result.changed:
            copy = Path(result.output)
            assert _said(messages(copy)) == _said(redact_messages(messages(path)))
            assert not any(secrets_in(p.read_text()) for p in path.parent.rglob("*") if p.is_file() and p != path)
            assert redacted(copy).changed is False


def _put(row: dict[str, JSON], secret: str) -> None:
    message = row.get("message")
    if isinstance(message, dict) and isinstance(message["content"], str):
        message["content"] += secret
    elif isinstance(message, dict) and isinstance(message["content"], list):
        for block in message["content"]:
            for key in ("text", "thinking", "content"):
                if isinstance(block, dict) and isinstance(text := block.get(key), str):
                    block[key] = text + secret
    elif isinstance(content := row.get("content"), str):
        row["content"] = content + secret


def _said(found: Sequence[Message]) -> list[Message]:
    """The messages without their thinking; of a response, without the rows that held nothing else."""
    out = []
    for message in found:
        content: tuple[Block, ...] = tuple(b for b in message.content if b["type"] != "thinking")
        if content:
            out.append(replace(message, content=content, uuids=(), timestamp="", usage=None))
    return out


def test_previews_and_stored_results_hold_no_secrets(case: Path) -> None:
    made = (
        Transcript()
        .prompt("x")
        .use("Bash", f"PASSWORD=hunter2\nPORT=8443\n{TOKEN}\n" + "line\n" * 20_000, command="env")
    )
    path = made.answer("ok").write(case.parent / "big.jsonl")
    target = Target(case.parent / "locks")

    result = run_stages(
        session_file(path), "budget", (), lambda run: [ToolBudget().plan(replace(run.scene, forced=True))], target
    )

    assert result.changed
    shown = Path(result.output).read_text()
    assert "PASSWORD=[REDACTED:password]\\nPORT=8443\\n[REDACTED:github-token]" in shown
    stored = next(Store.beside(Path(result.output)).folder.glob("toolu_*.txt"))
    assert stored.read_text().startswith("PASSWORD=[REDACTED:password]\nPORT=8443\n[REDACTED:github-token]\n")
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600


def test_the_line_that_stands_for_messages_holds_no_secrets(case: Path) -> None:
    made = Transcript().use("Bash", "ok", command="PASSWORD=hunter2 env").answer("x")
    line = receipt("snipped", messages(made.write(case)), 10, "snip-1", "")

    assert "hunter2" not in line
    assert "[REDACTED:password]" in line
