"""Notes on the disk: the old file or the new one, nobody else's, and never over what somebody wrote meanwhile."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path

import pytest

from core.errors import Changed, Damaged, Locked, WriteFailed
from core.memory.files import MemoryFiles, State
from core.memory.markdown import parse, render
from core.memory.notes import Notes, item
from core.memory.overflow import Dropped
from core.transcript.live import FileState
from core.transcript.projects import SessionFile
from tests.faults import kills, outcomes

SESSION = "11111111-1111-4111-8111-111111111111"
OLD = Notes(SESSION, 1, "u1").with_items("goal", [item("g1-1", "Old", "", ["u1"], 1)])
NEW = Notes(SESSION, 2, "u2").with_items("goal", [item("g1-1", "New\n\nlines", "", ["u1"], 2)])
GONE = [Dropped("tasks", item("t1-1", "Fix it", "done"), "done"), Dropped("log", item("l1-1", "Line"), "no room")]


@pytest.fixture
def files(tmp_path: Path) -> MemoryFiles:
    return MemoryFiles.beside(SessionFile(tmp_path / f"{SESSION}.jsonl", SESSION))


def save(files: MemoryFiles, notes: Notes = NEW) -> State:
    with files.locked(0):
        return files.save(files.read(), notes, GONE, State())


def names(files: MemoryFiles) -> list[str]:
    return sorted(path.name for path in files.folder.iterdir())


def test_what_is_saved_is_read_back_and_nobody_else_may_read_it(files: MemoryFiles) -> None:
    state = save(files)

    assert files.read().notes == NEW
    assert files.state() == state
    assert state.updates == 2
    assert files.notes_path == files.folder.parent.parent / SESSION / "session-memory" / "notes.md"
    for path in (files.folder, *files.folder.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_what_left_the_notes_is_appended_to_the_archive_once(files: MemoryFiles) -> None:
    save(files)
    save(files)
    save(files, OLD)
    text = (files.folder / "archive.md").read_text(encoding="utf-8")

    assert text == (
        f"# What left the notes of session {SESSION}\n\n## Update 2\n\n"
        "- [t1-1] (done) Fix it\n- [l1-1] (no room) Line\n"
    )
    with files.locked(0):
        files.save(files.read(), NEW, [Dropped("log", item("l2-1", "Line"), "no room")], State())
    assert (files.folder / "archive.md").read_text(
        encoding="utf-8"
    ) == f"{text}\n## Update 2\n\n- [l2-1] (no room) Line\n"


def test_without_a_file_the_notes_are_empty_and_the_state_the_first(files: MemoryFiles) -> None:
    held = files.read()

    assert (held.notes, held.exists, files.state()) == (Notes(SESSION), False, State())
    assert not files.folder.exists()


@pytest.mark.parametrize("content", [b"{", b"\xff", b'{"size":"x"}', b"[]"])
def test_a_broken_state_is_the_first_one(files: MemoryFiles, content: bytes) -> None:
    save(files)
    (files.folder / "state.json").write_bytes(content)

    assert files.state() == State()


def test_a_look_at_the_transcript_is_remembered(files: MemoryFiles, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"12345")
    seen = FileState.of(tmp_path / "t")
    files.save_state(State(failures=1).looked_at(seen, "extractive"))

    assert files.state() == State(5, seen.mtime_ns, "extractive", failures=1)


@pytest.mark.parametrize("meanwhile", [b"# Mine\n", None])
def test_what_a_person_wrote_or_removed_meanwhile_is_not_written_over(
    files: MemoryFiles, meanwhile: bytes | None
) -> None:
    save(files, OLD)
    held = files.read()
    files.notes_path.unlink()
    if meanwhile:
        files.notes_path.write_bytes(meanwhile)

    with files.locked(0), pytest.raises(Changed):
        files.save(held, NEW, [], State())
    assert (files.notes_path.read_bytes() if meanwhile else None) == meanwhile


def test_notes_that_somebody_made_meanwhile_are_not_written_over(files: MemoryFiles) -> None:
    held = files.read()
    save(files, OLD)

    with files.locked(0), pytest.raises(Changed):
        files.save(held, NEW, [], State())
    assert files.read().notes == OLD


def test_a_job_for_one_session_never_writes_the_notes_of_another(files: MemoryFiles) -> None:
    save(files, OLD)

    with files.locked(0), pytest.raises(Changed):
        files.save(files.read(), Notes("22222222-2222-4222-8222-222222222222", 9), [], State())
    assert files.read().notes == OLD


def test_of_two_updates_one_has_the_lock_and_an_empty_folder_is_not_left(files: MemoryFiles) -> None:
    with files.locked(0):
        with pytest.raises(Locked), files.locked(0):
            pass
        assert files.folder.is_dir()
    assert not files.folder.parent.exists()
    with files.locked(0):
        files.save(files.read(), OLD, [], State())
    assert files.read().notes == OLD


@pytest.mark.parametrize("folder", ["session-memory", ""])
def test_a_link_in_the_place_of_a_folder_is_refused(files: MemoryFiles, tmp_path: Path, folder: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = files.folder.parent / folder if folder else files.folder.parent
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / "elsewhere", target_is_directory=True)

    for use in (files.read, files.state, lambda: save(files)):
        with pytest.raises(Damaged):
            use()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_what_is_no_plain_file_is_refused(files: MemoryFiles, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x", encoding="utf-8")
    files.folder.mkdir(parents=True)
    os.mkfifo(files.folder / "state.json")
    files.notes_path.symlink_to(tmp_path / "secret")

    for use in (files.read, files.state):
        with pytest.raises(Damaged):
            use()
    files.notes_path.unlink()
    files.notes_path.write_bytes(b"x" * (5 << 20))
    with pytest.raises(Damaged):
        files.read()


def test_notes_that_cannot_be_opened_are_said_to_be(files: MemoryFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(Damaged, match="Permission denied"):
        files.read()


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EACCES])
def test_a_disk_that_refuses_leaves_the_old_notes_or_the_new_ones(files: MemoryFiles, error: int) -> None:
    save(files, OLD)
    seen = []
    for outcome in outcomes(lambda: save(files), error, half=error == errno.ENOSPC):
        assert isinstance(outcome, WriteFailed | Damaged | None)
        assert [name for name in names(files) if name.startswith(".")] == []
        seen.append(files.read().notes)
        assert seen[-1] in (OLD, NEW)
        if seen[-1] == NEW:
            save(files, OLD)
    assert OLD in seen


def test_a_disk_that_refuses_is_left_without_a_folder(files: MemoryFiles) -> None:
    seen = []
    for outcome in outcomes(lambda: save(files), errno.ENOSPC):
        seen.append(outcome)
        assert outcome is None or not files.folder.parent.exists() or [*files.folder.iterdir()]
        shutil.rmtree(files.folder.parent, ignore_errors=True)
    assert len(seen) > 5


def test_killed_at_any_moment_the_old_notes_or_the_new_ones_are_there_and_the_next_update_works(
    files: MemoryFiles,
) -> None:
    save(files, OLD)
    (files.folder / "archive.md").unlink()
    seen = []
    for _ in kills(lambda: save(files)):
        content = files.notes_path.read_bytes()
        assert content in (render(OLD).encode(), render(NEW).encode())
        seen.append(parse(content.decode()))
        assert files.state().updates in (1, 2)
        save(files, OLD)
        assert files.read().notes == OLD
        assert names(files) == ["archive.md", "notes.md", "state.json"]
    assert OLD in seen
    assert NEW in seen
