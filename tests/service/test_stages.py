"""What stages decide, written out: what a resume sees, what a second run does, and the way back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from core.context.decisions import Collapsed, Committed, Decision, Replaced, Seen, Snipped, Withdrawn
from core.context.view import api_messages
from core.errors import Changed, InputError, WriteFailed, WrongFormat
from core.model import JSON, Block, Message
from core.service import operation as service_operation
from core.service.history import output
from core.service.operation import Target
from core.service.session import opened
from core.service.snip import snip, snip_proposals
from core.service.stages import StageResult, StageRun, StageSettings, run_stages, write_projection
from core.service.undo import undo
from core.stages.base import Plan, Stored, applied
from core.stages.collapse import Collapse
from core.stages.snip import Snip
from core.testing import Transcript
from core.transcript import backwards
from core.transcript.projects import session_file
from core.transcript.records import decisions_of, find_records
from core.transcript.store import Store
from tests.disk import messages, rows, tree
from tests.shared import REAL

DATA = Path(__file__).parents[1] / "data"
FROM, TO = "00000000-0000-4000-8000-00000000000b", "00000000-0000-4000-8000-000000000016"
DEFAULT = StageSettings()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The case in a client's folder, under a name that a client gives."""
    folder = tmp_path / "projects" / "-srv-app"
    folder.mkdir(parents=True)
    return Path(shutil.copy(DATA / "cases" / "snip-1.jsonl", folder / "11111111-1111-4111-8111-111111111111.jsonl"))


def target(path: Path, in_place: bool = False, dry_run: bool = False) -> Target:
    return Target(path.parent.parent.parent / "locks", None, in_place, dry_run)


def run(path: Path, *decisions: Decision, bodies: Sequence[Stored] = (), **more: bool) -> StageResult:
    """Write some decisions."""
    plan = Plan("some", decisions, tuple(bodies))
    return run_stages(session_file(path), "some", ("x",), lambda _: [plan], target(path, **more))


def said(found: Sequence[Message]) -> bytes:
    return msgspec.json.encode(api_messages(found))


def predicted(path: Path, in_place: bool = False) -> tuple[Message, ...]:
    with opened(session_file(path)) as session:
        found = StageRun(session, "snip", (FROM, TO), target(path, in_place=in_place))
        scene = found.scene if in_place else found.named([Snip().plan_range(found.scene, FROM, TO)]).scene
        return applied(scene, Snip().plan_range(scene, FROM, TO)).view().messages


@pytest.mark.parametrize("in_place", [False, True])
def test_a_resume_sees_what_the_snip_predicts_and_what_went_is_found_by_its_id(path: Path, in_place: bool) -> None:
    before, foreseen = path.read_bytes(), predicted(path, in_place)
    result = snip(session_file(path), FROM, TO, target(path, in_place=in_place), DEFAULT)
    after = messages(result.output)

    assert result.changed
    assert (result.from_id[-2:], result.to_id[-2:], result.messages) == ("0a", "17", 11)
    assert said(after) == said(foreseen)
    assert [m.uuid for m in after] == [m.uuid for m in foreseen]
    (marker,) = [m for m in after if m.kind == "meta"]
    page = f"snip-{marker.uuid[:8]}"
    with opened(session_file(Path(result.output)), whole=True) as session:
        assert "def f3():" in output(session, page).text
        assert "def f3():" in output(session, "toolu_r003").text
    assert path.read_bytes().startswith(before) if in_place else path.read_bytes() == before


def test_the_chain_of_the_new_file_is_unbroken_and_each_row_later_than_its_parent(path: Path) -> None:
    found = rows(snip(session_file(path), FROM, TO, target(path), DEFAULT).output)
    chain = [row for row in found if "uuid" in row]

    assert [row["parentUuid"] for row in chain] == [None, *(row["uuid"] for row in chain[:-1])]
    stamps = [str(row["timestamp"]) for row in chain]
    assert stamps == sorted(set(stamps))


@pytest.mark.parametrize("in_place", [False, True])
def test_a_second_run_changes_nothing(path: Path, in_place: bool) -> None:
    result = snip(session_file(path), FROM, TO, target(path, in_place=in_place), DEFAULT)
    before = tree(path.parent)

    with pytest.raises(InputError, match="snipped already"):
        snip(session_file(Path(result.output)), FROM, TO, target(path, in_place=in_place), DEFAULT)
    if not in_place:
        again = snip(session_file(path), FROM, TO, target(path), DEFAULT)
        assert (again.changed, again.reason) == (False, "the same was written before")
        assert again.output == result.output
    assert tree(path.parent) == before


@pytest.mark.parametrize("in_place", [False, True])
def test_undo_gives_the_files_back(path: Path, in_place: bool) -> None:
    before = path.read_bytes()
    result = snip(session_file(path), FROM, TO, target(path, in_place=in_place), DEFAULT)
    undone = undo(session_file(Path(result.output)), path.parent.parent.parent, target(path).lock_dir)

    assert undone.op == "snip"
    assert path.read_bytes() == before
    if not in_place:
        assert tree(path.parent) == {path.name: before}


@pytest.mark.parametrize(
    ("from_id", "to_id"), [("ffff", TO), (TO, FROM), (FROM, FROM[:-2] + "78"), (FROM[:-2] + "01", FROM[:-2] + "78")]
)
def test_a_refused_range_writes_nothing(path: Path, from_id: str, to_id: str) -> None:
    before = tree(path.parent)
    with pytest.raises(InputError):
        snip(session_file(path), from_id, to_id, target(path), DEFAULT)

    assert tree(path.parent) == before


def test_rows_before_the_last_boundary_are_named_as_such(path: Path) -> None:
    shutil.copy(DATA / "cases" / "thrash-1.jsonl", path)
    before = tree(path.parent)

    with pytest.raises(InputError, match="lies before the last compaction"):
        snip(session_file(path), "00000000-0000-4000-8000-000000000009", TO, target(path), DEFAULT)
    assert tree(path.parent) == before


def test_a_dry_run_says_all_and_writes_nothing(path: Path) -> None:
    before = tree(path.parent)
    result = snip(session_file(path), FROM, TO, target(path, dry_run=True), DEFAULT)

    assert (result.changed, result.reason, result.messages) == (False, "dry run", 11)
    assert result.loss.reachable == 11
    assert result.tokens_after <= result.tokens_before
    assert len(result.verdicts) == 1
    assert tree(path.parent) == before


# Decisions on disk


def decisions(path: Path | str) -> list[Decision]:
    with opened(session_file(Path(path))) as session:
        assert session.claude
        return [msgspec.json.decode(raw, type=Decision) for raw in decisions_of(session.claude.log)]


def test_a_new_file_has_the_decisions_of_its_source_too(path: Path) -> None:
    run(path, Seen(("toolu_r001",)), in_place=True)
    result = snip(session_file(path), FROM, TO, target(path), DEFAULT)

    found = decisions(result.output)
    assert found[0] == Seen(("toolu_r001",))
    assert isinstance(found[1], Snipped)
    assert len(find_records_of(result.output)) == 1


def find_records_of(path: Path | str) -> list[object]:
    with opened(session_file(Path(path))) as session:
        assert session.claude
        return [*find_records(session.claude.log)]


def test_decisions_without_an_effect_are_recorded_in_place_and_nowhere_else(path: Path) -> None:
    before, size = messages(path), path.stat().st_size
    result = run(path, Seen(("toolu_r001",)))
    assert (result.changed, result.reason) == (False, "nothing is to be done")
    assert path.stat().st_size == size

    assert run(path, Seen(("toolu_r001",)), in_place=True).changed
    assert messages(path) == before
    assert decisions(path) == [Seen(("toolu_r001",))]
    undo(session_file(path), path.parent.parent.parent, target(path).lock_dir)
    assert path.stat().st_size == size


def test_decisions_before_the_part_that_is_read_count(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(path, Seen(("toolu_r001",)), in_place=True)
    snip(session_file(path), FROM, TO, target(path, in_place=True), DEFAULT)
    monkeypatch.setattr(backwards, "WHOLE_BYTES", 100)
    with opened(session_file(path)) as session:
        assert session.claude
        assert session.claude.log.start > 0
        state = StageRun(session, "x", (), target(path)).scene.state

    assert state.seen == {"toolu_r001"}
    assert len(state.snips) == 1


def test_a_decision_of_a_newer_version_is_passed_over_and_its_record_undone(path: Path) -> None:
    run(path, Seen(("toolu_r001",)), in_place=True)
    data = path.read_bytes()
    path.write_bytes(data.replace(b'{"kind":"seen"', b'{"kind":"from-later"'))
    with opened(session_file(path)) as session:
        assert StageRun(session, "x", (), target(path)).decisions == ()

    undo(session_file(path), path.parent.parent.parent, target(path).lock_dir)
    assert path.read_bytes() == data.partition(b'{"type":"foldmark"')[0]


# Bodies


def test_bodies_are_stored_before_what_leans_on_them(path: Path) -> None:
    block: Block = {"type": "tool_result", "tool_use_id": "toolu_r001", "content": "the whole"}
    result = run(path, Replaced("toolu_r001", "short", "cleared"), bodies=[Stored("toolu_r001", "Read", block)])

    store = Store.beside(Path(result.output))
    assert any(b.id == "toolu_r001" for b in store.bodies())
    found = [b for m in messages(result.output) for b in m.content if b.get("tool_use_id") == "toolu_r001"]
    assert found[0]["content"] == "short"


def test_where_nothing_can_be_stored_nothing_is_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise WriteFailed("no space left")

    monkeypatch.setattr(Store, "put_all", full)
    block: Block = {"type": "tool_result", "tool_use_id": "toolu_r001", "content": "the whole"}
    with pytest.raises(WriteFailed, match="no space left"):
        run(path, Replaced("toolu_r001", "short", "cleared"), bodies=[Stored("toolu_r001", "Read", block)])

    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_without_a_page_there_is_no_snip(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise WriteFailed("no space left")

    monkeypatch.setattr(Store, "archive", full)
    with pytest.raises(WriteFailed):
        snip(session_file(path), FROM, TO, target(path), DEFAULT)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("others", [False, True])
def test_a_file_that_cannot_be_written_leaves_no_store(
    path: Path, monkeypatch: pytest.MonkeyPatch, others: bool
) -> None:
    """But what another process has written meanwhile keeps its own."""

    def full(place: Path, _: object) -> None:
        if others:
            place.write_bytes(b"")
        raise WriteFailed("no space left")

    monkeypatch.setattr(service_operation, "write_new", full)
    with pytest.raises(WriteFailed):
        snip(session_file(path), FROM, TO, target(path), DEFAULT)
    assert any(p.is_dir() for p in path.parent.iterdir()) is others


def test_rows_that_come_meanwhile_make_it_start_anew(path: Path) -> None:
    tries = 0

    def choose(found: StageRun) -> list[Plan]:
        nonlocal tries
        tries += 1
        if tries < 3:
            with path.open("ab") as file:
                file.write(b'{"type":"note"}\n')
        return [Snip().plan_range(found.scene, FROM, TO)]

    assert run_stages(session_file(path), "snip", (), choose, target(path, in_place=True)).changed
    assert tries == 3

    def always(found: StageRun) -> list[Plan]:
        with path.open("ab") as file:
            file.write(b'{"type":"note"}\n')
        return [Plan("x", (Seen(("a",)),))]

    with pytest.raises(Changed):
        run_stages(session_file(path), "x", (), always, target(path, in_place=True))


# Spans


def test_a_folded_span_has_a_page_that_finds_all_of_it(path: Path) -> None:
    def choose(found: StageRun) -> list[Plan]:
        scene = found.scene
        uuids = tuple(m.uuid for m in scene.messages[1:12])
        span = Collapsed("abcdef01-0000", uuids, "[11 messages folded]", 900, 10)
        return [Plan("collapse", (span, Committed((span.id, "unknown")), Withdrawn(("unknown",))))]

    result = run_stages(session_file(path), "collapse", (), choose, target(path))
    after = messages(result.output)
    assert after[1].uuid == "abcdef01-0000"
    with opened(session_file(Path(result.output)), whole=True) as session:
        assert "def f2():" in output(session, "span-abcdef01").text
        scene = StageRun(session, "collapse", (), target(path)).scene
    assert [s.id for s in scene.state.committed] == ["abcdef01-0000"]
    assert scene.view().messages == scene.messages == after


# Other formats


def test_of_another_clients_conversation_the_new_context_is_written(tmp_path: Path) -> None:
    content: list[JSON] = []
    for n in range(30):
        content.append({"role": "user", "content": f"Question {n}, with some words. " * 20})
        content.append({"role": "assistant", "content": f"Answer {n}, with more of them. " * 40})
    path = tmp_path / "request.json"
    path.write_text(json.dumps({"messages": content}), encoding="utf-8")
    with opened(session_file(path)) as session:
        first, last = session.messages[3].uuid, session.messages[9].uuid

    result = snip(session_file(path), first, last, Target(tmp_path / "locks"), DEFAULT)
    written = json.loads(Path(result.output).read_text(encoding="utf-8"))["messages"]
    assert "snip-" in json.dumps(written)
    assert "Answer 1," not in json.dumps(written)
    with pytest.raises(WrongFormat, match="in place"):
        snip(session_file(path), first, last, Target(tmp_path / "locks", in_place=True), DEFAULT)


# Proposals


def test_where_nothing_is_proposed_the_reason_is_given(path: Path) -> None:
    with opened(session_file(path)) as session:
        found = snip_proposals(session, target(path), DEFAULT)
    assert found.proposals == []
    assert "nothing is both large" in found.reason

    made = Transcript().prompt("Go.").use("Bash", "ok", thinking="Hm.", command="make")
    made.write(path)
    with opened(session_file(path)) as session:
        assert "holds thinking" in snip_proposals(session, target(path), DEFAULT).reason


# Real sessions


@pytest.mark.real
@pytest.mark.skipif(not REAL, reason="no real transcripts in FOLDMARK_SHARED")
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("source", REAL, ids=lambda p: p.stem)
def test_a_real_session_is_folded_and_resumes_as_predicted(source: Path, in_place: bool, tmp_path: Path) -> None:
    path = Path(shutil.copy(source, tmp_path / "22222222-2222-4222-8222-222222222222.jsonl"))
    views: list[tuple[Message, ...]] = []

    def choose(found: StageRun) -> list[Plan]:
        plan = Collapse().drain(found.scene, 10**9)
        scene = found.scene if in_place else found.named([plan]).scene
        views.append(applied(scene, Collapse().drain(scene, 10**9)).view().messages)
        return [plan]

    result = run_stages(session_file(path), "collapse", (), choose, Target(tmp_path / "locks", in_place=in_place))
    if not result.changed:
        assert result.reason
        return
    assert as_users(messages(result.output)) == as_users(views[0])
    assert result.tokens_after < result.tokens_before
    again = run_stages(session_file(Path(result.output)), "collapse", ("again",), choose, Target(tmp_path / "locks"))
    assert not again.changed


def as_users(found: Sequence[Message]) -> bytes:
    """What is said; a report of a background task, which some versions send as a system message, by a user."""
    return said([replace(m, role="user") if m.role == "system" and m.kind != "attachment" else m for m in found])


def test_write_projection_takes_an_open_run(path: Path) -> None:
    with opened(session_file(path)) as session:
        found = StageRun(session, "snip", (FROM, TO), target(path))
        result = write_projection(found, [Snip().plan_range(found.scene, FROM, TO, found.earlier)])

    assert said(messages(result.output)) == said(predicted(path))
    assert isinstance(result, StageResult)


def test_all_plans_of_a_stage_are_reported_as_one(path: Path) -> None:
    plans = [
        Plan("budget", (Seen(("t1",)),), tokens_freed=300),
        Plan("microcompact", reason="too little"),
        Plan("budget", (Seen(("t2",)),), tokens_freed=20, reason="1 of 1 stay"),
    ]
    result = run_stages(session_file(path), "some", (), lambda _: plans, target(path, in_place=True))
    assert [(s.stage, s.tokens_freed) for s in result.stages] == [("budget", 320), ("microcompact", 0)]
    assert result.reason == "too little; 1 of 1 stay"


def test_undo_in_place_removes_what_was_stored_and_nothing_else_needs(path: Path) -> None:
    store = Store.beside(path)
    store.folder.mkdir(parents=True)
    (store.folder / "toolu_x.txt").write_bytes(b"a client's output")
    clients = tree(path.parent)

    def body(ident: str, text: str) -> Stored:
        return Stored(ident, "Bash", {"type": "tool_result", "content": text})

    def changed(*bodies: Stored) -> dict[str, bytes]:
        decisions = tuple(Replaced(b.id, f"[{b.id}]", "cleared") for b in bodies)
        assert run(path, *decisions, bodies=bodies, in_place=True).changed
        return tree(path.parent)

    first = changed(body("toolu_s", "shared"), body("toolu_x", "a client's output"))
    assert changed(body("toolu_s", "shared"), body("toolu_o", "own")).keys() > first.keys() > clients.keys()
    for expected in (first, clients):
        undo(session_file(path), path.parent.parent.parent, target(path).lock_dir)
        assert tree(path.parent) == expected


@pytest.mark.parametrize("in_place", [False, True])
def test_undo_of_a_snip_leaves_nothing_behind(path: Path, in_place: bool) -> None:
    before = tree(path.parent)
    result = snip(session_file(path), FROM, TO, target(path, in_place=in_place), DEFAULT)
    assert Store.beside(Path(result.output)).bodies()
    undo(session_file(Path(result.output)), path.parent.parent.parent, target(path).lock_dir)
    assert tree(path.parent) == before
