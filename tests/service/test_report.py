"""Sessions compared with what they were made of."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError, SessionNotFound
from core.report.data import Report
from core.service.context import context_report
from core.service.history import output as text_of
from core.service.history import outputs, search, stored_outputs
from core.service.report import opened_source, report
from core.service.session import opened
from core.testing import Transcript
from core.transcript.projects import session_file
from core.transcript.store import Store
from tests.disk import compacted, on_disk
from tests.sessions import transcripts


def session(turns: int = 8) -> Transcript:
    made = Transcript()
    for n in range(turns):
        made.prompt(f"Never touch config{n}.toml")
        made.use("Read", f"line of mod{n}\n" * 300, file_path=f"src/mod{n}.py", thinking="hm")
        made.answer(f"I changed src/mod{n}.py and `parseThing{n}`. " * 5)
    return made


def compared(after: Path | str, before: Path | None = None, scratch: Path | None = None) -> Report:
    with opened(session_file(Path(after)), whole=True) as new:
        if before:
            with opened(session_file(before)) as old:
                return report(old, new)
        with opened_source(new, scratch or Path()) as old:
            return report(old, new)


def test_a_compaction_is_compared_with_its_source(tmp_path: Path) -> None:
    path = session().write(tmp_path / "a.jsonl")
    result = compacted(path, 2_000)

    found = compared(result.output)

    assert (found.before.id, found.after.id) == ("a", result.output_id)
    assert found.before.tokens == result.tokens_before
    assert found.after.tokens <= result.tokens_after
    assert found.places["gone"].messages == 0
    assert found.places["kept"].messages == result.loss.kept
    assert found.places["stored"].messages == result.loss.reachable
    assert sum(n.tokens for n in found.places.values()) + found.before.by_kind["system"] == found.before.tokens
    assert sum(found.after.by_kind.values()) <= found.after.tokens
    assert [s.standing for s in found.requests] == ["verbatim"] * 8
    assert [s.standing for s in found.constraints] == ["verbatim"] * 8
    assert found.names.paths_named == found.names.paths
    assert {p.place for p in found.largest} == {"kept", "stored"}
    warm, cold = found.after.next_request_usd["warm"], found.after.next_request_usd["cold"]
    assert warm
    assert cold
    assert warm < cold < (found.before.next_request_usd["cold"] or 0)
    assert found.before.window_tokens == 1_000_000


def test_what_fills_the_context_is_told_as_context_tells_it(tmp_path: Path) -> None:
    path = session().write(tmp_path / "a.jsonl")
    found = compared(compacted(path, 2_000).output)
    with opened(session_file(path)) as before:
        shown = context_report(before)

    assert found.before.tokens == shown.tokens.total
    assert found.before.by_kind.keys() == shown.by_kind.keys()
    assert {"tool_use", "thinking", "text"} < found.before.by_kind.keys()
    for kind, tokens in shown.by_kind.items():  # by rows there, by messages here: rounded at other places
        assert found.before.by_kind[kind] == pytest.approx(tokens, abs=len(shown.by_kind) + tokens * 0.01)


def test_a_compaction_in_place_is_compared_with_what_the_file_was(tmp_path: Path) -> None:
    path = session().write(tmp_path / "a.jsonl")
    alone = compared(path, path)
    assert compacted(path, 2_000, in_place=True).changed
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    found = compared(path, scratch=scratch)

    assert found.before.tokens == alone.before.tokens
    assert found.before.messages == alone.before.messages
    assert found.places["gone"].messages == 0
    assert found.places["stored"].messages > 10
    assert found.after.tokens < found.before.tokens


def test_a_source_that_grew_is_compared_as_it_was(tmp_path: Path) -> None:
    made = session()
    path = made.write(tmp_path / "a.jsonl")
    result = compacted(path, 2_000)
    before = compared(result.output).before
    made.prompt("More").answer("Done").write(path)

    assert compared(result.output, scratch=_folder(tmp_path)).before == msgspec.structs.replace(
        before, path=str(tmp_path / "scratch" / "a.jsonl")
    )


def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir(exist_ok=True)
    return folder


def test_a_source_that_shrank_meanwhile_is_copied_as_far_as_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = session()
    path = made.write(tmp_path / "a.jsonl")
    result = compacted(path, 2_000)
    record = json.loads(Path(result.output).read_bytes().splitlines()[0])
    rest = Path(result.output).read_bytes().split(b"\n", 1)[1]
    record["source"]["bytes"] = path.stat().st_size - 1
    Path(result.output).write_bytes(json.dumps(record, separators=(",", ":")).encode() + b"\n" + rest)

    assert compared(result.output, scratch=_folder(tmp_path)).before.messages > 0


def test_nothing_is_lost_between_a_session_and_itself(tmp_path: Path) -> None:
    path = session(2).write(tmp_path / "a.jsonl")

    found = compared(path, path)

    assert found.before == found.after
    assert found.places["kept"].messages == found.before.messages
    assert (found.reachable, found.gone, found.names.missing) == ([], [], [])


def test_of_two_sessions_that_have_nothing_in_common_all_is_gone(tmp_path: Path) -> None:
    before = session(2).write(tmp_path / "a.jsonl")
    after = Transcript("22222222-2222-4222-8222-222222222222").prompt("Hello").answer("Hi").write(tmp_path / "b.jsonl")

    found = compared(after, before)

    assert found.places["gone"].messages == found.before.messages
    assert {s.standing for s in found.requests} == {"gone"}
    assert len(found.gone) == found.before.messages


def test_documents_are_compared_by_what_they_say(tmp_path: Path) -> None:
    messages = [{"role": r, "content": f"{r} {n} " * 200} for n in range(8) for r in ("user", "assistant")]
    path = tmp_path / "request.json"
    path.write_text(json.dumps({"messages": messages}))
    result = compacted(path, 500)

    found = compared(result.output, path)

    assert found.places["kept"].messages == result.loss.kept
    assert found.places["gone"].messages + found.places["stored"].messages == result.loss.reachable


def test_a_session_without_a_record_has_to_be_named_with_another(tmp_path: Path) -> None:
    path = session(1).write(tmp_path / "a.jsonl")
    document = tmp_path / "request.json"
    document.write_text(json.dumps({"messages": [{"role": "user", "content": "x"}]}))

    for each in (path, document):
        with pytest.raises(InputError, match="does not say what it was made of") as error:
            compared(each)
        assert "{report}" in error.value.hint


def test_a_source_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    path = session().write(tmp_path / "a.jsonl")
    result = compacted(path, 2_000)
    path.unlink()

    with pytest.raises(SessionNotFound, match="is gone"):
        compared(result.output)


@settings(max_examples=40)
@given(made=transcripts(), keep=st.sampled_from((0, 50, 400)))
def test_nothing_of_a_compaction_is_gone(made: Transcript, keep: int) -> None:
    with on_disk(made) as path:
        result = compacted(path, keep)
        if not result.changed:
            return
        found = compared(result.output)
        assert found.gone == []
        assert found.before.tokens == result.tokens_before
        assert sum(n.messages for n in found.places.values()) == found.before.messages
        with opened(session_file(Path(result.output)), whole=True) as after:
            from core.service.history import output

            for ident in found.reachable:
                assert output(after, ident).id == ident


def test_what_was_stored_in_a_file_that_is_gone_is_gone_from_the_report(tmp_path: Path) -> None:
    path = session().write(tmp_path / "a" / "a.jsonl")
    result = compacted(path, 2_000, out_dir=tmp_path / "b")
    output = Path(result.output)
    (page,) = Store.beside(output).folder.glob("compacted-*")

    page.unlink()
    with opened(session_file(output), whole=True, inside=(tmp_path / "b",)) as new, opened(session_file(path)) as old:
        found = report(old, new)
        assert found.places["stored"].messages == 0
        assert found.places["gone"].messages == result.loss.reachable
        assert (stored_outputs(new).outputs, search(new, "is missing").hits) == ([], [])

    again = compared(output, path)  # the source is within reach
    assert again.places["gone"].messages == 0
    with opened(session_file(output), whole=True) as new:
        places = [text_of(new, line.id).where for line in outputs(new).outputs if line.kind in ("result", "assistant")]
    assert {*places} == {"active", "source"}


def test_a_secret_in_the_place_of_a_tools_name_is_not_shown(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    path = Transcript().prompt("Begin.").use(secret, "some lines\n" * 999).answer("Done.").write(tmp_path / "s.jsonl")

    found = compared(path, path)
    assert [part.tool for part in found.largest if part.tool.startswith("[REDACTED:")]
    assert secret not in str(found.to_json())
