"""Sessions at a glance: titles, figures, states, from both ends of a file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model import JSON
from core.transcript.listing import END_BYTES, TITLE_CHARS, SessionInfo, describe, last_written, sessions
from core.transcript.projects import SessionFile, session_file
from core.transcript.records import Record, Source

DATA = Path(__file__).parents[1] / "data" / "cases"
ID = "11111111-1111-4111-8111-111111111111"


def user(text: JSON, **more: JSON) -> dict[str, JSON]:
    row: dict[str, JSON] = {"type": "user", "uuid": "u", "cwd": "/srv/app", "version": "2.1.30"}
    return {**row, "timestamp": "2026-01-05T09:00:00.000Z", "message": {"role": "user", "content": text}, **more}


def assistant(tokens: JSON = 100, **more: JSON) -> dict[str, JSON]:
    usage: dict[str, JSON] = {"input_tokens": 1, "cache_read_input_tokens": tokens, "output_tokens": None}
    message: JSON = {"id": "m", "model": "claude-test-1", "content": [{"type": "text", "text": "Yes."}], "usage": usage}
    row: dict[str, JSON] = {"type": "assistant", "uuid": "a", "cwd": "/srv/app", "version": "2.1.31"}
    return {**row, "timestamp": "2026-01-05T09:00:05.000Z", "message": message, **more}


def write(path: Path, *rows: dict[str, JSON] | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [row if isinstance(row, bytes) else json.dumps(row, separators=(",", ":")).encode() for row in rows]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "projects" / "-srv-app" / f"{ID}.jsonl"


def info(path: Path, *rows: dict[str, JSON] | bytes) -> SessionInfo:
    return describe(session_file(write(path, *rows)))


def test_an_ordinary_session_tells_all_of_it(path: Path) -> None:
    found = info(path, user("Fix the\n  login"), assistant())

    assert (found.title, found.cwd, found.project) == ("Fix the login", "/srv/app", "/srv/app")
    assert (found.version, found.model, found.usage_tokens, found.state) == ("2.1.31", "claude-test-1", 101, "ready")
    assert found.updated == 1767603605


TITLES: list[dict[str, JSON]] = [
    {"type": "custom-title", "customTitle": "mine"},
    {"type": "ai-title", "aiTitle": "the model's"},
    {"type": "last-prompt", "lastPrompt": "last"},
    {"type": "summary", "summary": "legacy", "leafUuid": "leaf-of-this-file"},
]


@pytest.mark.parametrize("count", range(5))
def test_titles_have_the_clients_order(path: Path, count: int) -> None:
    rows: list[dict[str, JSON] | bytes] = [
        user("first", uuid="leaf-of-this-file"),
        assistant(),
        *reversed(TITLES[4 - count :]),
    ]

    assert info(path, *rows).title == ["first", "legacy", "last", "the model's", "mine"][count]


def test_the_last_title_wins(path: Path) -> None:
    old: dict[str, JSON] = {"type": "custom-title", "customTitle": "old"}

    assert info(path, old, user("first"), {**old, "customTitle": "new"}).title == "new"


def test_a_summary_of_another_session_is_no_title(path: Path) -> None:
    assert info(path, TITLES[3], user("first")).title == "first"


def test_the_title_file_beside_the_transcript_counts_like_a_title_row(path: Path) -> None:
    beside = path.with_suffix("") / "custom-title.json"
    beside.parent.mkdir(parents=True)
    beside.write_text('{"customTitle": "beside", "by": "user"}', encoding="utf-8")

    assert info(path, user("first"), TITLES[1]).title == "beside"
    assert info(path, user("first"), TITLES[0]).title == "mine"


def test_a_broken_title_file_is_as_good_as_none(path: Path) -> None:
    beside = path.with_suffix("") / "custom-title.json"
    beside.parent.mkdir(parents=True)
    beside.write_bytes(b'{"customTitle": 3')

    assert info(path, user("first")).title == "first"


def test_a_pipe_in_the_place_of_the_title_file_is_as_good_as_none(path: Path) -> None:
    path.with_suffix("").mkdir(parents=True)
    os.mkfifo(path.with_suffix("") / "custom-title.json")  # opening it would wait for ever

    assert info(path, user("prompt")).title == "prompt"


def test_text_that_quotes_a_title_row_is_no_title(path: Path) -> None:
    quoting = user("first", toolUseResult={"customTitle": "quoted"})

    assert info(path, quoting, assistant()).title == "first"


def test_the_first_prompt_is_what_a_person_typed(path: Path) -> None:
    rows: list[dict[str, JSON] | bytes] = [
        user("caveat", isMeta=True),
        user("Summary of before", isCompactSummary=True),
        user("of a subagent", isSidechain=True),
        user("<command-name>/init</command-name>"),
        user("<local-command-stdout>done</local-command-stdout>"),
        user([{"type": "tool_result", "tool_use_id": "t", "content": "result"}]),
        user([{"type": "image"}, {"type": "text", "text": "look"}, {"type": "text", "text": "here"}]),
    ]

    assert info(path, *rows).title == "look here"
    assert info(path, *rows[:5]).title == "/init"


def test_a_title_is_one_line_of_bounded_length(path: Path) -> None:
    title = info(path, user("word\n" * 5000)).title

    assert len(title) == TITLE_CHARS
    assert title.endswith(" word…")
    assert "\n" not in title


def test_only_the_ends_of_a_large_file_are_read(path: Path) -> None:
    middle = user("x" * 1000, uuid="m")
    rows: list[dict[str, JSON] | bytes] = [
        user("start"),
        *[middle] * 300,
        {"type": "custom-title", "customTitle": "lost"},
        *[middle] * 300,
    ]

    found = info(path, *rows, assistant(5))

    assert path.stat().st_size > 4 * END_BYTES
    assert (found.title, found.usage_tokens) == ("start", 6)


def test_a_row_longer_than_an_end_hides_nothing_else(path: Path) -> None:
    found = info(path, user("start"), assistant(), user("y" * 3 * END_BYTES))

    assert (found.title, found.usage_tokens, found.state) == ("start", None, "ready")
    assert found.updated == path.stat().st_mtime


def test_figures_of_subagents_and_of_made_up_rows_do_not_count(path: Path) -> None:
    made_up = assistant()
    made_up["message"] = {"model": "<synthetic>", "content": [], "usage": {}}

    found = info(path, user("x"), assistant(7), assistant(99, isSidechain=True), made_up)

    assert (found.usage_tokens, found.model) == (8, "claude-test-1")


@pytest.mark.parametrize(
    ("rows", "state"),
    [
        ([], "empty"),
        ([{"type": "mode", "mode": "normal"}], "empty"),
        ([b"\x00\xff garbage", b"[1]", b"null", b"{}"], "damaged"),
        ([{"type": "system", "subtype": "compact_boundary"}, user("s", isCompactSummary=True)], "compacted"),
        ([user("he said compact_boundary"), assistant()], "ready"),
    ],
)
def test_states(path: Path, rows: list[dict[str, JSON] | bytes], state: str) -> None:
    assert info(path, *rows).state == state


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("codex/sample.jsonl", "codex"),
        ("codex/damaged.jsonl", "codex"),
        ("gemini-jsonl/session-2026-05-01T10-00-0a0a0a0a.jsonl", "gemini-jsonl"),
        ("messages-api/request.json", "messages"),
        ("opencode-export/ses_demo.json", "opencode"),
        ("claude-ai-export/conversations.json", "claude-ai"),
    ],
)
def test_what_another_client_wrote_is_named_and_not_taken_for_damage(name: str, kind: str) -> None:
    found = describe(session_file(DATA.parent / "foreign" / name))

    assert (found.state, found.format, found.usage_tokens, found.title) == ("foreign", kind, None, "")


def test_what_is_known_but_not_read_is_foreign_too(path: Path) -> None:
    row: dict[str, JSON] = {"uuid": "1", "parentUuid": None, "sessionId": "s", "type": "user"}

    assert info(path, row | {"message": {"role": "user", "parts": [{"text": "x"}]}}).format == "qwen"
    assert info(path, row | {"message": {"role": "user", "content": "x"}}).format == "claude-code"


def test_a_session_with_a_title_is_not_looked_into_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("core.transcript.listing.recognised")

    assert info(path, user("he said"), assistant()).format == "claude-code"


def test_a_boundary_near_the_start_of_a_large_file_is_seen(path: Path) -> None:
    boundary: dict[str, JSON] = {"type": "system", "subtype": "compact_boundary"}

    assert info(path, boundary, *[user("x" * 1000)] * 300).state == "compacted"


def test_a_session_that_a_client_has_open_is_live(path: Path) -> None:
    file = session_file(write(path, user("x")))

    assert describe(file, {ID}).state == "live"


def test_a_session_of_metadata_only_is_empty_and_has_its_title() -> None:
    found = describe(session_file(DATA / "boundary-6.jsonl"))

    assert (found.title, found.state, found.usage_tokens) == ("t", "empty", None)


def test_the_traces_of_windows_and_crashes_do_no_harm(path: Path) -> None:
    rows: list[dict[str, JSON] | bytes] = [
        b"\xef\xbb\xbf" + json.dumps(user("first")).encode() + b"\r",
        b"\0\0",
        b'{"type":"user","message":{"con',
    ]

    assert info(path, *rows).title == "first"


@pytest.mark.parametrize("content", [3, None, [{"type": 3}], {"a": 1}])
def test_content_of_a_wrong_type_is_no_prompt(path: Path, content: JSON) -> None:
    assert info(path, user(content), user("next")).title == "next"


@pytest.mark.parametrize("timestamp", ["", "yesterday", "0001-01-01T00:00:00", "9999-12-31T23:59:59-14:00"])
def test_without_a_usable_time_the_files_own_counts(path: Path, timestamp: str) -> None:
    write(path, user("x", timestamp=timestamp))
    os.utime(path, (5, 5))

    assert describe(session_file(path)).updated == 5


def test_a_time_without_a_zone_is_utc(path: Path) -> None:
    assert info(path, user("x", timestamp="2026-01-05T09:00:05")).updated == 1767603605


def test_a_file_that_went_away_is_shown_as_damaged(tmp_path: Path) -> None:
    found = describe(SessionFile(tmp_path / "projects" / "p" / "gone.jsonl", "gone", mtime=3.0, size_bytes=9))

    assert (found.state, found.updated, found.project) == ("damaged", 3.0, "p")


def test_sessions_of_a_folder_leave_out_those_of_its_namesake(tmp_path: Path) -> None:
    project = tmp_path / "projects" / "-srv-my-app"
    mine = write(project / "1.jsonl", user("mine", cwd="/srv/my-app"))
    write(project / "2.jsonl", user("other", cwd="/srv/my/app"))
    moved = write(project / "3.jsonl", user("moved", cwd="/elsewhere"))

    assert {found.file.path for found in sessions(tmp_path, "/srv/my-app")} == {mine, moved}
    assert len(list(sessions(tmp_path))) == 3


@given(st.lists(st.binary(max_size=200), max_size=6))
def test_any_bytes_give_a_line(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    found = info(tmp_path_factory.mktemp("p") / "x.jsonl", *lines)

    assert "\n" not in found.title


def test_a_compaction_in_place_is_known_by_its_end_however_much_it_kept(path: Path) -> None:
    boundary: dict[str, JSON] = {"type": "system", "subtype": "compact_boundary", "uuid": "b"}
    filler = [user("y" * 1_000)] * 70
    rows = (*filler, boundary, *filler)
    assert info(path, *rows).state == "ready"
    assert info(path, *rows, {"type": "foldmark-end", "sessionId": ID}).state == "compacted"


def test_sessions_are_in_the_order_of_the_times_that_they_show(path: Path) -> None:
    def row(hour: int) -> dict[str, JSON]:
        return user("x" * 1_000, timestamp=f"2026-01-05T{hour:02}:00:00.000Z")

    no_time: dict[str, JSON] = {"type": "custom-title", "customTitle": "x" * 5_000}
    paths = {
        "noon": write(path.with_name("noon.jsonl"), row(12)),
        "morning": write(path.with_name("morning.jsonl"), *[row(9)] * 200, no_time),
        "evening": write(path.with_name("evening.jsonl"), row(20), no_time),
        "no rows": write(path.with_name("none.jsonl"), b"{"),
    }
    for number, one in enumerate(paths.values()):
        os.utime(one, (1767621600 + number, 1767621600 + number))  # 14:00
    found = list(sessions(path.parents[2]))
    assert [i.file.path for i in found] == [paths[name] for name in ("evening", "no rows", "noon", "morning")]
    assert [i.updated for i in found] == [last_written(i.file) for i in found]


def test_a_copy_counts_from_when_it_was_made_until_somebody_goes_on_in_it(path: Path) -> None:
    source = describe(session_file(write(path, user("first"), assistant())))
    rows = path.read_bytes()
    record = Record(op="compact", id="1", session_id="copy", source=Source(str(path), ID, len(rows)))
    copy = path.with_name("copy.jsonl")
    copy.write_bytes(record.row(rows) + rows)

    assert [(i.file.path, i.updated == i.file.mtime) for i in sessions(path.parents[2])] == [
        (copy, True),
        (path, False),
    ]
    assert last_written(session_file(copy)) > source.updated

    copy.write_bytes(copy.read_bytes() + json.dumps(user("go on", timestamp="2026-01-05T10:00:00Z")).encode() + b"\n")

    assert describe(session_file(copy)).updated == source.updated - 5 + 3600
