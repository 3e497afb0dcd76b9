"""Everything that a session ever held, by id and by text."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from core.errors import IdNotFound, InputError, WrongUsage
from core.model import JSON
from core.service.history import output, outputs, readable_ids, search
from core.service.items import MAX_SOURCES
from core.service.session import Session, opened
from core.testing import SESSION_ID, Transcript
from core.transcript.projects import session_file, session_id
from core.transcript.records import REDACTED
from core.transcript.store import Store
from tests.disk import compacted, on_disk, rows
from tests.work import grows_linearly

OTHER_ID = "22222222-2222-4222-8222-222222222222"
DATA = Path(__file__).parents[1] / "data"


@contextmanager
def whole(path: Path | str) -> Iterator[Session]:
    with opened(session_file(Path(path)), whole=True) as session:
        yield session


def long_session() -> Transcript:
    made = Transcript().prompt("Find the needle. " * 100)
    made.use("Grep", "hay\nthe Needle\nhay" + "\nmore" * 2_000, pattern="needle", path="src/")
    return made.answer("It is on line 2.").prompt("Thanks. " * 50).answer("You are welcome.")


def where(path: Path | str) -> dict[str, str]:
    with whole(path) as session:
        return {line.id: line.where for line in outputs(session).outputs}


def test_results_are_listed_by_their_calls_and_the_rest_by_its_row() -> None:
    made = (
        long_session()
        .attachment("date", "Monday")
        .system("local_command", "<local-command-stdout>x</local-command-stdout>")
    )
    made.system("informational", "for the screen")
    with on_disk(made) as path, whole(path) as session:
        listed = outputs(session)
        texts = {line.id: output(session, line.id).text for line in listed.outputs}

    assert [(line.kind, line.name, line.where) for line in listed.outputs] == [
        ("prompt", "", "active"),
        ("response", "", "active"),
        ("result", "Grep", "active"),
        ("response", "", "active"),
        ("prompt", "", "active"),
        ("response", "", "active"),
        ("attachment", "", "active"),
        ("command", "", "active"),
    ]
    assert listed.outputs[2].id == made.calls[0]
    call = texts[listed.outputs[1].id]
    assert call == f"Grep {made.calls[0]}\npattern: needle\npath: src/"
    assert [*texts.values()][-2:] == ["Monday", "<local-command-stdout>x</local-command-stdout>"]


def test_in_place_it_is_earlier_and_in_a_new_session_stored_or_in_its_source() -> None:
    made = long_session()
    first, result, last = str(made.rows[0]["uuid"]), made.calls[0], str(made.rows[-1]["uuid"])
    with on_disk(made) as path:
        new = compacted(path, 30)
        assert {k: where(new.output)[k] for k in (first, result, last)} == {
            first: "stored",
            result: "stored",
            last: "active",
        }
        Store.beside(Path(new.output)).remove()
        assert where(new.output)[result] == "source"
        compacted(path, 30, in_place=True)
        assert {k: where(path)[k] for k in (first, result, last)} == {
            first: "earlier",
            result: "earlier",
            last: "active",
        }


def test_the_start_of_a_messages_id_shows_the_message_where_its_result_was_stored_too() -> None:
    made, results = long_session(), f"abcdef01-{OTHER_ID[9:]}"
    with on_disk(made) as path:
        path.write_bytes(path.read_bytes().replace(str(made.rows[2]["uuid"]).encode(), results.encode()))
        with whole(compacted(path, 30).output) as session:
            for name in (results, results[:8]):
                assert (output(session, name).id, output(session, name).kind) == (results, "results")


def test_what_is_gone_everywhere_is_not_listed() -> None:
    made = long_session()
    with on_disk(made) as path:
        new = compacted(path, 30)
        Store.beside(Path(new.output)).remove()
        path.unlink()
        assert made.calls[0] not in where(new.output)


def test_a_page_that_was_changed_says_so() -> None:
    made = long_session()
    with on_disk(made) as path:
        new = compacted(path, 30)
        page = next(Store.beside(Path(new.output)).folder.glob("compacted-*.md"))
        page.write_bytes(b"x" * page.stat().st_size)
        with whole(new.output) as session:
            assert "was changed since it was stored" in output(session, made.calls[0]).text


def test_generations_are_followed_back_and_circles_end() -> None:
    made = long_session()
    with on_disk(made) as path:
        first = compacted(path, 3_000)
        second = compacted(Path(first.output), 30)
        for each in (first, second):
            Store.beside(Path(each.output)).remove()
        assert where(second.output)[made.calls[0]] == "source"

        # each names the other as its source
        path.write_bytes(record(second.output) + made.data())
        assert where(second.output)[made.calls[0]] == "source"
        path.write_bytes(record(str(path)) + made.data())
        assert where(path)[made.calls[0]] == "active"


def record(source: str, op: str = "compact") -> bytes:
    named = {"path": source, "sessionId": session_id(Path(source)), "bytes": 1}
    row = {"type": "foldmark", "op": op, "id": "r", "sessionId": "x", "bytes": 0, "source": named}
    return json.dumps(row).encode() + b"\n"


@pytest.mark.parametrize("source", ["gone.jsonl", "a\0b", "loop.jsonl", "notes.txt", ".", "x" * 5_000])
def test_a_source_that_cannot_be_read_is_passed_over(tmp_path: Path, source: str) -> None:
    (tmp_path / "notes.txt").write_text("notes", encoding="utf-8")
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    path = tmp_path / "a.jsonl"
    path.write_bytes(record(source) + Transcript().prompt("Hello").data())
    assert len(where(path)) == 1


@pytest.mark.parametrize("how", ["elsewhere", "linked", "other session", "pipe"])
def test_a_record_leads_to_no_file_but_the_session_that_it_names_nearby(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "projects" / "p"
    near, far = folder / "source.jsonl", tmp_path / "elsewhere" / "source.jsonl"
    source = Transcript(OTHER_ID).prompt("Not for you").write(far if how in ("elsewhere", "linked") else near)
    if how == "linked":
        folder.mkdir(parents=True)
        near.symlink_to(far)
        source = near
    if how == "pipe":
        near.unlink()
        os.mkfifo(near)
    named = record(str(source)).replace(b'"sessionId": "source"', b'"sessionId": "x"')
    made = Transcript().prompt("Hello").write(folder / "a.jsonl")
    made.write_bytes((named if how == "other session" else record(str(source))) + made.read_bytes())

    assert len(where(made)) == 1


def test_what_was_left_out_of_a_copy_without_secrets_is_not_found_from_it(tmp_path: Path) -> None:
    source = Transcript(OTHER_ID).prompt("My key is hunter2").write(tmp_path / "source.jsonl")
    for op, found in (("compact", 2), (REDACTED, 1)):
        (tmp_path / "copy.jsonl").write_bytes(record(str(source), op) + Transcript().prompt("Hello").data())
        assert len(where(tmp_path / "copy.jsonl")) == found


def test_a_source_of_another_client_and_very_many_generations_end_the_search(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(record(str(DATA / "foreign" / "messages-api" / "request.json")) + Transcript().prompt("Hi").data())
    assert len(where(path)) == 1

    for number in range(MAX_SOURCES + 3):
        made = Transcript(f"{number:08}-1111-4111-8111-111111111111").prompt(f"Generation {number}")
        (tmp_path / f"{number}.jsonl").write_bytes(record(f"{number + 1}.jsonl") + made.data())
    assert len(where(tmp_path / "0.jsonl")) == MAX_SOURCES + 1


def test_an_id_may_be_cut_short_when_it_is_the_only_one_of_its_kind() -> None:
    made = long_session().use("Read", "text", file_path="a")
    with on_disk(made) as path, whole(path) as session:
        assert output(session, made.calls[0]).kind == "result"
        with pytest.raises(IdNotFound, match="2 ids begin with toolu") as caught:
            output(session, "toolu")
        assert made.calls[1] in caught.value.hint
        assert output(session, made.calls[1][:-1] + "2").name == "Read"
        made.calls.append("")
        for unknown in ("nothing", ""):
            with pytest.raises(IdNotFound, match="no text has the id"):
                output(session, unknown)


def test_one_prefix_is_enough() -> None:
    with on_disk(Transcript().prompt("Hello")) as path, whole(path) as session:
        assert output(session, "1111").text == "Hello"


def test_an_exact_id_wins_over_longer_ones() -> None:
    made = Transcript().prompt("x")
    for ident in ("t1", "t10"):
        made.respond({"type": "tool_use", "id": ident, "name": "Read", "input": {}}).result(f"of {ident}", ident)
    with on_disk(made) as path, whole(path) as session:
        assert output(session, "t1").text == "of t1"


def test_lines_and_matches_are_cut_out_of_a_text() -> None:
    made = long_session()
    with on_disk(made) as path, whole(path) as session:
        part = output(session, made.calls[0], (2, 3))
        assert (part.text, part.first_line, part.total_lines) == ("the Needle\nhay", 2, 2_003)
        assert output(session, made.calls[0], (0, 1)).text == "hay"
        for lines in ((5, 3), (0, 0)):
            with pytest.raises(WrongUsage, match=f"no lines {lines[0]} to {lines[1]}"):
                output(session, made.calls[0], lines)
        assert output(session, made.calls[0], (9_000, 9_001)).text == ""
        assert output(session, made.calls[0], grep="Need.e|ne{3}").text == "2: the Needle"
        assert output(session, made.calls[0], (2, 3), grep="hay").text == "3: hay"
        with pytest.raises(InputError, match="is no regular expression"):
            output(session, made.calls[0], grep="(")


def test_search_finds_lines_in_any_case_and_names_where() -> None:
    made = long_session()
    with on_disk(made) as path, whole(path) as session:
        hits = search(session, "NEEDLE").hits
        assert [(h.id, h.line, h.where, h.name) for h in hits] == [
            (str(made.rows[0]["uuid"]), 1, "active", ""),
            (str(made.rows[1]["uuid"]), 2, "active", ""),
            (made.calls[0], 2, "active", "Grep"),
        ]
        assert hits[2].text == "the Needle"
        assert len(hits[0].text) < 250  # a long line is cut around the match
        assert search(session, "N[e]+dle", regex=True).hits[0].id == made.calls[0]
        assert search(session, "straw").hits == []
        with pytest.raises(InputError, match="is no regular expression"):
            search(session, "(", regex=True)


def test_search_tells_when_there_is_more() -> None:
    made = long_session()
    with on_disk(made) as path, whole(path) as session:
        assert (len(search(session, "needle", limit=2).hits), search(session, "needle", limit=2).more) == (2, True)
        assert search(session, "needle", limit=3).more is False


def test_search_finds_what_json_writes_in_another_way() -> None:
    text = 'say "hi"\\n\tto Jos\u00e9 \u65e5\u672c'
    with on_disk(Transcript().prompt(text).answer("x")) as path:
        path.write_bytes(path.read_bytes().replace("José".encode(), b"Jos\\u00e9"))
        for needle in ('"hi"', "\\n", "\tto", "jos\u00e9", "\u65e5\u672c", "SAY"):
            with whole(path) as session:
                assert len(search(session, needle).hits) == 1, needle


def test_search_finds_what_was_taken_out_once_in_each_place() -> None:
    made = long_session()
    with on_disk(made) as path:
        new = compacted(path, 30)
        with whole(new.output) as session:
            hits = [hit for hit in search(session, "the needle").hits if hit.where != "active"]
            assert {hit.id for hit in hits} == {str(made.rows[0]["uuid"]), made.calls[0]}
            places = [(hit.id, hit.line) for hit in hits]
            assert len(places) == len(set(places))


def test_search_finds_a_line_once_where_the_whole_and_its_parts_are_stored() -> None:
    hay = "hay\n" * 2_000
    made = Transcript().prompt("Go").use("Bash", f"one needle\n{hay}one needle", command="x").answer("A needle")
    made.prompt("Then").answer("Done")
    with on_disk(made) as path, whole(compacted(path, 5).output) as session:
        hits = [h for h in search(session, "needle").hits if h.where != "active"]

    assert [(h.kind, h.text) for h in hits] == [
        ("result", "one needle"),
        ("result", "one needle"),
        ("response", "A needle"),
    ]


def test_an_output_that_the_client_stored_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / f"{SESSION_ID}.jsonl"
    path.write_bytes((DATA / "cases" / "persist-1.jsonl").read_bytes())
    with whole(path) as session:
        gone = output(session, "toolu_m")
        assert "Preview (first 2KB):" in gone.text
        assert "toolu_m: the stored output toolu_m.txt is gone" in gone.text

    Store.beside(path).folder.mkdir(parents=True)
    (Store.beside(path).folder / "toolu_m.txt").write_text("all\nof\nit", encoding="utf-8")
    with whole(path) as session:
        assert output(session, "toolu_m").text == "all\nof\nit"
        assert "toolu_m" in {hit.id for hit in search(session, "of").hits}
    os.unlink(Store.beside(path).folder / "toolu_m.txt")
    assert path.read_bytes() == (DATA / "cases" / "persist-1.jsonl").read_bytes()


def test_other_clients_sessions_are_their_messages() -> None:
    with whole(DATA / "foreign" / "codex" / "sample.jsonl") as session:
        listed = outputs(session).outputs
        assert {line.where for line in listed} == {"active", "earlier"}
        assert "result" in {line.kind for line in listed}
        for line in listed:
            assert output(session, line.id).id == line.id
            assert search(session, output(session, line.id).text.split("\n")[0][:20]).hits
        held = session.conversation.messages if session.conversation else ()
        assert {m.uuid for m in (*held, *session.messages)} <= {line.id for line in listed}


def test_of_twice_the_stored_outputs_reading_each_is_twice_the_work(tmp_path: Path) -> None:
    def reading(count: int) -> Callable[[], object]:
        made = Transcript().prompt("Look")
        for n in range(count):
            made.use("Bash", "x", command=f"step {n}")
        path = made.write(tmp_path / f"{count}.jsonl")
        for call in made.calls:
            Store.beside(path).put(call, "whole")
        session = stack.enter_context(whole(path))
        return lambda: search(session, "wh.le", regex=True, limit=count)

    with ExitStack() as stack:
        assert grows_linearly(reading, 30)


def test_rows_that_are_hardly_messages_break_nothing(tmp_path: Path) -> None:
    made = Transcript().prompt("One")
    for message in (None, {"content": 7}, {"content": ["x", {"type": "tool_use", "name": "Bash", "input": "raw"}]}):
        made.prompt("x").rows[-1]["message"] = message  # type: ignore[assignment]
    with whole(made.write(tmp_path / "a.jsonl")) as session:
        texts = [output(session, line.id).text for line in outputs(session).outputs]
    assert texts == ["One", "", "", "Bash None\ninput: raw"]


def test_a_row_that_stands_twice_is_read_where_it_stands_last() -> None:
    made = Transcript().prompt("Old")
    made.rows.append({**made.rows[0], "message": {"role": "user", "content": "New"}})
    with on_disk(made) as path, whole(path) as session:
        assert [output(session, line.id).text for line in outputs(session).outputs] == ["New"]
        assert rows(path)[0] != rows(path)[1]


def test_a_stored_output_that_was_changed_gives_what_is_left_in_the_row() -> None:
    made = Transcript().prompt("Look").use("Bash", "preview", command="x").answer("Done")
    with on_disk(made) as path:
        store = Store.beside(path)
        stored = store.put(made.calls[0], "all of it")
        with whole(path) as session:
            assert output(session, made.calls[0]).text == "all of it"
        stored.write_text("something", encoding="utf-8")
        with whole(path) as session:
            text = output(session, made.calls[0]).text
        assert text.startswith("preview\n[")
        assert "was changed since it was stored" in text


def test_pictures_are_part_of_their_message_and_no_texts_of_their_own() -> None:
    made = long_session().prompt("See")
    picture: JSON = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    made.rows[0]["message"] = {"role": "user", "content": [picture, {"type": "text", "text": "What is this?"}]}
    with on_disk(made) as path:
        new = compacted(path, 30)
        assert "image" in {body.kind for body in Store.beside(Path(new.output)).bodies()}
        with whole(new.output) as session:
            assert "image" not in {line.kind for line in outputs(session).outputs}
            assert "What is this?" in output(session, str(made.rows[0]["uuid"])).text


def test_a_list_says_how_much_there_is_and_how_it_begins() -> None:
    made = Transcript().prompt("Look\nat it").use("Bash", "word " * 1_000, command="x").answer("Done")
    with on_disk(made) as path, whole(path) as session:
        lines = outputs(session).outputs
        assert readable_ids(session) == {line.id for line in lines}
        assert [line.chars for line in lines] == [len(output(session, line.id).text) for line in lines]

    assert lines[0].begin == "Look at it"
    assert max(len(line.begin) for line in lines) <= 100
    assert [line.begin for line in lines if line.kind == "result"] == [
        ("word " * 20).rstrip() + "…"
    ]  # chars says how many


def test_what_a_person_said_is_found_first_and_cut_lines_say_so() -> None:
    long = f"{'a' * 300} needle {'b' * 300}"
    made = Transcript().prompt("Hello").use("Bash", long, command="x", todo={"find": ["needle"]}).prompt("The needle")
    with on_disk(made) as path, whole(path) as session:
        hits = search(session, "needle").hits

    assert [hit.text for hit in hits] == ["The needle", 'todo: {"find":["needle"]}', f"…{long[201:407]}…"]
