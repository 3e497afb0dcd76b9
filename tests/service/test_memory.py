"""Notes of a session: kept over its life, one writer at a time, only what is new, never another session's."""

from __future__ import annotations

import multiprocessing
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import ApiError, Changed, Damaged, FailureKind, Locked, NothingNoted, NoUsableMemory, WrongFormat
from core.memory.cadence import PAID, Cadence
from core.memory.extract import ByRule, Extracted
from core.memory.files import MemoryFiles, State
from core.memory.limits import MemoryLimits
from core.memory.markdown import parse, render
from core.memory.notes import Notes, item
from core.memory.operations import Add
from core.memory.part import Part
from core.model import JSON, Usage
from core.redact.text import redact
from core.service import memory
from core.service.memory import edit, show, update
from core.testing import SESSION_ID, Transcript
from core.transcript.projects import session_file
from tests.faults import kills

CASE = Path(__file__).parents[1] / "data" / "cases" / "memory-1.jsonl"
SMALL = MemoryLimits(wait_s=0.0, cadence=Cadence(1, 1, 1, 1, 1))


class Model:
    """An extractor that costs something, remembers the parts that it got, and does what it is told to."""

    name = "anthropic"
    cadence = PAID
    part_tokens = 1_000_000

    def __init__(self, *does: Callable[[Part], Extracted]) -> None:
        self.does = [*does]
        self.parts: list[Part] = []

    def extract(self, part: Part) -> Extracted:
        self.parts.append(part)
        return self.does.pop(0)(part) if self.does else noting("A decision")(part)


def noting(*texts: str) -> Callable[[Part], Extracted]:
    usage = Usage(100, output_tokens=10)
    return lambda _part: Extracted(tuple(Add("decisions", text) for text in texts), (), usage, 1)


def failing(kind: FailureKind | None = None) -> Callable[[Part], Extracted]:
    def fail(_part: Part) -> Extracted:
        raise ApiError(kind, "no") if kind else NothingNoted("no")

    return fail


def talk(turns: int = 3) -> Transcript:
    made = Transcript()
    for turn in range(turns):
        made.prompt(f"Step {turn}: look at module {turn}.").use(
            "Read", f"part {turn}\n" * 200, file_path=f"/m{turn}.py"
        )
        made.answer(f"Module {turn} is fine.")
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return talk().write(tmp_path / "p" / f"{SESSION_ID}.jsonl")


def notes_of(path: Path) -> Notes:
    return MemoryFiles.beside(session_file(path)).read().notes


def state_of(path: Path) -> State:
    return MemoryFiles.beside(session_file(path)).state()


def test_notes_are_made_shown_and_brought_up_to_date(path: Path) -> None:
    before = show(session_file(path))
    first = update(session_file(path), ByRule())
    made = talk(4)
    made.write(path)
    second = update(session_file(path), ByRule())
    view = show(session_file(path))

    assert (before.exists, before.text, before.unseen_messages, before.updates) == (False, "", 12, 0)
    assert (first.changed, first.reason, first.messages, first.refused) == (True, "asked", 12, [])
    assert (first.calls, first.usage.input_tokens, first.summarizer) == (0, 0, "extractive")
    assert (second.messages, second.covers) == (4, made.last)
    assert (view.exists, view.unseen_messages, view.unseen_tokens, view.updates) == (True, 0, 0, 2)
    assert "Step 0: look at module 0." in view.text
    assert view.text.startswith(f"# Session memory\nThey tell of the session up to message {made.last}.\n\n## Title\n")
    assert view.path == first.path == str(path.with_suffix("") / "session-memory" / "notes.md")


def test_a_session_without_anything_new_is_not_asked_about(path: Path) -> None:
    update(session_file(path), ByRule())
    content = path.with_suffix("").joinpath("session-memory", "notes.md").read_bytes()
    model = Model()
    done = update(session_file(path), model)

    assert (done.changed, done.reason, model.parts) == (False, "nothing is new", [])
    assert path.with_suffix("").joinpath("session-memory", "notes.md").read_bytes() == content


def test_only_what_is_new_is_sent_and_the_bill_is_kept(path: Path) -> None:
    first = update(session_file(path), Model(noting("One")))
    talk(4).write(path)
    model = Model(noting("Two"))
    second = update(session_file(path), model)

    assert [m.uuid for m in model.parts[0].new] == [m.uuid for m in model.parts[0].view[12:]]
    assert len(model.parts[0].new) == 4
    assert (first.calls, first.usage.input_tokens, first.usage.output_tokens) == (1, 100, 10)
    assert (state_of(path).calls, state_of(path).tokens) == (2, 220)
    assert [e.text for e in notes_of(path).of("decisions")] == ["One", "Two"]
    assert second.operations == 1


def test_a_call_that_is_open_is_not_covered(path: Path) -> None:
    made = talk()
    covered = made.last
    made.call("Bash", command="make").write(path)

    assert update(session_file(path), ByRule()).covers == covered


def test_an_update_that_is_not_due_is_left_and_remembered(path: Path) -> None:
    limits = MemoryLimits(cadence=Cadence(100_000, 100_000, 99, 100_000, 99))
    done = update(session_file(path), ByRule(), limits, when_due=True)

    assert (done.changed, done.reason) == (False, "too little is new")
    assert (state_of(path).size, state_of(path).waits_for) == (path.stat().st_size, "extractive")
    assert not Path(done.path).exists()
    assert update(session_file(path), ByRule(), SMALL, when_due=True).reason == "first"
    assert state_of(path).waits_for == ""
    assert update(session_file(path), ByRule(), SMALL, when_due=True).reason == "nothing is new"


def test_a_long_part_is_noted_in_pieces_each_of_which_is_kept(path: Path) -> None:
    model = Model(noting("One"), noting("Two"), failing())
    model.part_tokens = 700
    with pytest.raises(NothingNoted):
        update(session_file(path), model)

    assert [e.text for e in notes_of(path).of("decisions")] == ["One", "Two"]
    assert notes_of(path).covers == model.parts[2].view[model.parts[2].start - 1].uuids[-1]


def test_a_part_that_is_too_long_is_halved(path: Path) -> None:
    model = Model(failing("too-long"), noting("One"))
    done = update(session_file(path), model)

    assert len(model.parts[1].new) < len(model.parts[0].new)
    assert sum(len(part.new) for part in model.parts[1:]) == done.messages == 12
    with pytest.raises(ApiError):
        update(session_file(talk(9).write(path)), Model(*[failing("too-long")] * 9))


def test_three_failures_and_it_pauses_until_the_user_spoke_twice(path: Path) -> None:
    for failures in (1, 2, 3):
        with pytest.raises(ApiError):
            update(session_file(path), Model(failing("network")), SMALL, when_due=True)
        assert (state_of(path).failures, state_of(path).failed_turns) == (failures, 3)
    model = Model()
    assert update(session_file(path), model, SMALL, when_due=True).reason == "too little is new"
    assert update(session_file(talk(4).write(path)), model, SMALL, when_due=True).changed is False
    assert model.parts == []
    assert show(session_file(path)).failures == 3
    assert update(session_file(talk(5).write(path)), model, SMALL, when_due=True).changed is True
    assert state_of(path).failures == 0


@pytest.mark.parametrize("kind", ["spend", "deadline", "cancelled"])
def test_a_cap_is_no_failure_of_the_session(path: Path, kind: FailureKind) -> None:
    with pytest.raises(ApiError):
        update(session_file(path), Model(failing(kind)))

    assert state_of(path) == State()


def test_what_a_person_wrote_meanwhile_is_what_the_update_is_made_on(path: Path) -> None:
    update(session_file(path), ByRule())
    talk(4).write(path)
    files = MemoryFiles.beside(session_file(path))

    def edited(part: Part) -> Extracted:
        text = files.notes_path.read_text(encoding="utf-8")
        files.notes_path.write_text(text.replace("## Log", "## Mine\nHands off.\n\n## Log"), encoding="utf-8")
        return noting("One")(part)

    model = Model(edited)
    done = update(session_file(path), model)

    assert done.changed
    assert len(model.parts) == 1
    assert notes_of(path).others == (("Mine", "Hands off."),)
    assert notes_of(path).of("decisions")[-1].text == "One"


def test_a_result_is_thrown_away_where_another_update_was_faster(path: Path) -> None:
    files = MemoryFiles.beside(session_file(path))

    def raced(part: Part) -> Extracted:
        other = Notes(SESSION_ID, 1, "elsewhere").with_items("goal", [item("g1-1", "Theirs")])
        files.notes_path.write_text(render(other), encoding="utf-8")
        return noting("Mine")(part)

    with pytest.raises(Changed):
        update(session_file(path), Model(raced))
    assert notes_of(path).of("goal")[0].text == "Theirs"
    assert notes_of(path).of("decisions") == ()


def test_a_person_who_never_stops_typing_wins(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    update(session_file(path), ByRule())
    talk(4).write(path)
    files, save = MemoryFiles.beside(session_file(path)), MemoryFiles.save

    def typing(self: MemoryFiles, *args: object) -> State:
        with files.notes_path.open("a", encoding="utf-8") as notes:
            notes.write("More.\n")
        return save(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(MemoryFiles, "save", typing)
    with pytest.raises(Changed):
        update(session_file(path), ByRule())
    assert files.notes_path.read_text(encoding="utf-8").count("More.") == memory.ATTEMPTS


def test_notes_of_another_session_are_never_written(path: Path) -> None:
    update(session_file(path), ByRule())
    files = MemoryFiles.beside(session_file(path))
    text = files.notes_path.read_text(encoding="utf-8").replace(SESSION_ID, "22222222-2222-4222-8222-222222222222")
    files.notes_path.write_text(text, encoding="utf-8")
    talk(4).write(path)

    with pytest.raises(Damaged):
        update(session_file(path), ByRule())
    with pytest.raises(Damaged):
        edit(session_file(path), [])
    assert files.notes_path.read_text(encoding="utf-8") == text


def test_notes_that_lost_their_head_are_this_sessions_by_their_place(path: Path) -> None:
    files = MemoryFiles.beside(session_file(path))
    files.folder.mkdir(parents=True)
    files.notes_path.write_text("## Goal\n- Mine\n", encoding="utf-8")
    update(session_file(path), ByRule())

    assert notes_of(path).session == SESSION_ID
    assert notes_of(path).of("goal")[0].text == "Mine"


def test_only_claude_code_sessions_have_notes(tmp_path: Path) -> None:
    other = tmp_path / "a.json"
    other.write_text('{"messages":[{"role":"user","content":"Hello"}]}', encoding="utf-8")

    with pytest.raises(WrongFormat):
        show(session_file(other))
    with pytest.raises(WrongFormat):
        update(session_file(other), ByRule())


def test_secrets_of_the_session_are_neither_sent_nor_kept(path: Path) -> None:
    token = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    Transcript().prompt(f"Always push with {token}").answer(f"I will use {token}.").write(path)
    model = Model(noting(f"Use {token}"))
    update(session_file(path), model)
    talk(1).prompt(f"Never use {token}").answer("Ok.").write(path)
    update(session_file(path), ByRule())

    assert all(token not in str(part.new) for part in model.parts)
    assert all(token not in p.read_text("utf-8") for p in MemoryFiles.beside(session_file(path)).folder.iterdir())


def test_what_the_user_said_with_a_secret_in_it_may_be_quoted(path: Path) -> None:
    token = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    said = f"Always push with {token} from here."
    talk(1).prompt(said).answer("Ok.").write(path)
    quoted: JSON = {"op": "add", "section": "constraints", "text": said}

    done = edit(session_file(path), [quoted])

    assert (done.operations, done.refused) == (1, [])
    assert notes_of(path).of("constraints")[0].text == redact(said)

    update(session_file(path), ByRule())
    talk(1).prompt(said).answer("Ok.").prompt("Go on").answer("Ok.").write(path)
    again = Model(lambda _part: Extracted((Add("goal", said),)))
    assert update(session_file(path), again).refused == []
    assert token not in str(again.parts[-1].view)


def test_a_caller_changes_notes_by_operations_and_is_told_what_was_refused(path: Path) -> None:
    update(session_file(path), ByRule())
    uuid = str(talk().rows[0]["uuid"])
    operations: list[JSON] = [
        {"op": "add", "section": "decisions", "text": "Use tabs", "sources": [uuid]},
        {"op": "add", "section": "constraints", "text": "Step 1: look at module 1."},
        {"op": "add", "section": "constraints", "text": "Never said"},
        {"op": "add", "section": "nowhere", "text": "x"},
        {"op": "obsolete", "id": "t9-9", "evidence": "1"},
        "nonsense",
    ]
    before = notes_of(path)
    done = edit(session_file(path), operations)

    assert (done.changed, done.operations, done.summarizer, done.messages) == (True, 2, memory.CALLER, 0)
    assert len(done.refused) == 4
    assert "word for word" in " ".join(done.refused)
    assert notes_of(path).covers == before.covers
    assert notes_of(path).of("decisions")[-1] == item("d2-1", "Use tabs", "", [uuid], 2)


def test_messages_may_be_named_by_the_begin_of_their_id(path: Path) -> None:
    rows = CASE.read_text("utf-8").replace(
        '"00000000-0000-4000-8000-00000000000c"', '"abcdef00-0000-4000-8000-00000000000c"'
    )
    path.write_text(rows, encoding="utf-8")
    done = edit(session_file(path), [{"op": "add", "section": "decisions", "text": "x", "sources": ["abcdef"]}])

    assert done.refused == []
    assert notes_of(path).of("decisions")[0].sources == ("abcdef00-0000-4000-8000-00000000000c",)
    assert edit(session_file(path), [{"op": "obsolete", "id": "d1-1"}]).archived == 1
    assert (
        edit(session_file(path), [{"op": "add", "section": "state", "text": "x", "sources": ["0000"]}]).operations == 0
    )


def test_a_session_that_goes_on_from_notes_begins_with_them(path: Path) -> None:
    summary = (
        "Second-hand.\n# Session memory\nHead.\n\n## Open tasks\n- [t4-1] (open) Fix it\n\n## Log\n(3 more in /p.md)\n"
    )
    Transcript().boundary(summary).prompt("Go on").answer("Fixed.").write(path)
    update(session_file(path), ByRule())

    assert notes_of(path).of("tasks") == (item("t4-1", "Fix it", "open"),)
    assert notes_of(path).update == 5
    assert notes_of(path).prose == {}


def test_what_was_kept_word_for_word_behind_the_notes_is_not_noted_twice(path: Path) -> None:
    rows = [*Transcript().boundary("x").prompt("Go").answer("Done.").prompt("More").answer("Done, too.").rows]
    covered = str(rows[3]["uuid"])
    made = Transcript().boundary(
        f"# Session memory\nThey tell of the session up to message {covered}.\n\n## Goal\n- Go\n"
    )
    made.prompt("Go").answer("Done.").prompt("More").answer("Done, too.").write(path)

    assert [row["uuid"] for row in made.rows] == [row["uuid"] for row in rows]
    assert update(session_file(path), ByRule()).messages == 2


def test_while_one_updates_another_waits_or_leaves(path: Path) -> None:
    file = session_file(path)
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom core.memory.files import MemoryFiles\n"
        "from core.transcript.projects import session_file\n"
        "with MemoryFiles.beside(session_file(Path(sys.argv[1]))).locked(5):\n"
        "    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Locked):
            update(file, ByRule(), SMALL)
    finally:
        holder.stdin.close()
        holder.wait(10)
        holder.stdout.close()
    assert update(file, ByRule(), SMALL).changed


def _update_in_a_process(path: str) -> bool:
    return update(session_file(Path(path)), ByRule()).changed


def test_of_two_at_once_one_works_and_the_other_finds_it_done(path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        changed = pool.map(_update_in_a_process, [str(path)] * 2)

    assert sorted(changed) == [False, True]
    assert notes_of(path).update == 1


def test_killed_at_any_moment_the_old_notes_or_the_new_ones_are_there(path: Path) -> None:
    update(session_file(path), ByRule())
    files = MemoryFiles.beside(session_file(path))
    old = files.notes_path.read_bytes()
    backup = path.parent / "backup"
    shutil.copytree(files.folder, backup)
    talk(4).write(path)
    seen = set()
    for _ in kills(lambda: update(session_file(path), ByRule())):
        seen.add(parse(files.notes_path.read_text(encoding="utf-8")).update)
        assert update(session_file(path), ByRule()).covers == talk(4).last
        assert notes_of(path).update == 2
        shutil.rmtree(files.folder)
        shutil.copytree(backup, files.folder)
        assert files.notes_path.read_bytes() == old
    assert seen == {1, 2}


def test_memory_kept_over_100_turns_takes_part_in_a_compaction_without_a_model(path: Path) -> None:
    from core.compaction.full import Context
    from core.compaction.memory import Memory, plan_from_memory
    from core.service.session import opened

    made = Transcript()
    for turn in range(100):
        made.prompt(f"Step {turn}: look at module {turn}." + " Never push to main." * (turn == 0))
        made.use("Read", f"line of part {turn}\n" * 150, file_path=f"/srv/app/m{turn}.py").answer(
            f"Module {turn} is fine."
        )
        if turn % 10 == 9:
            assert update(session_file(made.write(path)), ByRule()).refused == []
    files = MemoryFiles.beside(session_file(path))
    with opened(session_file(path)) as session:
        size = session.size
        found = Memory(files.read().notes, files.notes_path, 8_000)
        plan = plan_from_memory(
            Context(
                session.messages,
                size.item_tokens,
                size.overhead_tokens,
                lambda new: [len(str(m.content)) // 3 for m in new],
                history="/h.md",
            ),
            found,
            files.session,
            threshold_tokens=167_000,
        )

    kept = plan.sizes_tokens[1:]
    assert 10_000 <= sum(kept) <= 40_000
    assert plan.tokens_after < plan.tokens_before / 3
    assert "Never push to main." in plan.summary.text
    assert "/srv/app/m99.py" in plan.summary.text
    assert files.read().notes.update == 10
    with opened(session_file(path)) as session, pytest.raises(NoUsableMemory, match="next compaction is due"):
        plan_from_memory(
            Context(session.messages, size.item_tokens, size.overhead_tokens, lambda new: [50_000] * len(new)),
            found,
            files.session,
            threshold_tokens=60_000,
        )


def test_the_case_as_it_was_handed(tmp_path: Path) -> None:
    path = tmp_path / f"{SESSION_ID}.jsonl"
    shutil.copy(CASE, path)
    done = update(session_file(path), ByRule())

    assert done.covers == "00000000-0000-4000-8000-00000000000c"
    assert done.refused == []
