from __future__ import annotations

import errno
import fcntl
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.errors import Changed, Locked, WriteFailed
from core.transcript import locks, writer
from core.transcript.live import FileState
from core.transcript.locks import locked
from core.transcript.writer import append, make_private, put, remove, replace, write_new
from tests.faults import failing, kills, outcomes

REPOSITORY = Path(__file__).parents[2]
OLD = b'{"row":1}\n'
ROWS = [b'{"row":2}\n', b'{"row":3}\n']
NEW = b"".join(ROWS)
DISK = [(errno.ENOSPC, False), (errno.ENOSPC, True), (errno.EDQUOT, False), (errno.EACCES, False), (errno.EIO, False)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


@pytest.fixture
def old(folder: Path) -> Path:
    path = folder / "old.jsonl"
    path.write_bytes(OLD)
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def appended(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def at_call(monkeypatch: pytest.MonkeyPatch, name: str, action: Callable[[], object]) -> None:
    """Runs `action` right before the first call of `os.<name>`: another process that comes between."""
    real = getattr(os, name)

    def call(*args: object, **kwargs: object) -> object:
        monkeypatch.setattr(os, name, real)
        action()
        return real(*args, **kwargs)

    monkeypatch.setattr(os, name, call)


# A new file


def test_a_new_file_holds_the_pieces_and_is_private(folder: Path) -> None:
    mask = os.umask(0)
    try:
        write_new(folder / "new.jsonl", iter(ROWS))
    finally:
        os.umask(mask)
    assert (folder / "new.jsonl").read_bytes() == NEW
    assert stat.S_IMODE((folder / "new.jsonl").stat().st_mode) == 0o600
    assert names(folder) == ["new.jsonl"]


def test_pieces_of_any_size_arrive_in_order(folder: Path) -> None:
    pieces = [bytes([65 + n]) * (n * writer.BATCH_BYTES // 3) for n in range(8)]
    write_new(folder / "new", iter(pieces))
    assert (folder / "new").read_bytes() == b"".join(pieces)


def test_a_new_file_may_be_empty(folder: Path) -> None:
    write_new(folder / "new", [])
    assert (folder / "new").read_bytes() == b""


def test_an_existing_file_is_never_overwritten(old: Path) -> None:
    with pytest.raises(WriteFailed) as caught:
        write_new(old, ROWS)
    assert str(old) in str(caught.value)
    assert old.read_bytes() == OLD
    assert names(old.parent) == ["old.jsonl"]


def unwanted() -> Iterator[bytes]:
    pytest.fail("a row was made for nothing")
    yield b""


def test_no_row_is_made_for_a_file_that_cannot_be_written(old: Path) -> None:
    with pytest.raises(WriteFailed):
        write_new(old, unwanted())
    state = FileState.of(old)
    appended(old, NEW)
    with pytest.raises(Changed):
        replace(old, unwanted(), state)


def test_everything_is_on_the_disk_before_it_is_seen(old: Path) -> None:
    with failing(0, 0) as steps:
        write_new(old.parent / "new", ROWS)
        assert steps == ["open", "write", "fsync", "link", "open", "fsync"]
        steps.clear()
        replace(old, ROWS, FileState.of(old))
        assert steps == ["open", "open", "fchmod", "write", "fsync", "replace", "open", "fsync"]
        steps.clear()
        append(old, NEW)
        assert steps == ["open", "write", "fsync"]


def test_a_link_that_leads_nowhere_is_not_written_through(folder: Path) -> None:
    (folder / "new.jsonl").symlink_to(folder / "elsewhere")
    with pytest.raises(WriteFailed):
        write_new(folder / "new.jsonl", ROWS)
    assert names(folder) == ["new.jsonl"]


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_while_it_is_written_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:
        without_links(monkeypatch)
    at_call(monkeypatch, "link", lambda: (folder / "new.jsonl").write_bytes(OLD))
    with pytest.raises(WriteFailed):
        write_new(folder / "new.jsonl", ROWS)
    assert (folder / "new.jsonl").read_bytes() == OLD
    assert names(folder) == ["new.jsonl"]


def without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)


def test_a_disk_without_hard_links_gets_new_files_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_links(monkeypatch)
    write_new(folder / "new.jsonl", ROWS)
    assert (folder / "new.jsonl").read_bytes() == NEW
    assert names(folder) == ["new.jsonl"]


def test_a_disk_without_hard_links_that_fails_keeps_no_empty_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_links(monkeypatch)
    assert all(isinstance(outcome, WriteFailed) for outcome in new_file_outcomes(folder, errno.EIO))


def new_file_outcomes(folder: Path, error: int, half: bool = False) -> Iterator[object]:
    for outcome in outcomes(lambda: write_new(folder / "new.jsonl", ROWS), error, half):
        if outcome is None:
            (folder / "new.jsonl").unlink()
        assert names(folder) == []
        yield outcome


@pytest.mark.parametrize(("error", "half"), DISK)
def test_whatever_fails_there_is_no_new_file_and_the_error_says_which_and_why(
    folder: Path, error: int, half: bool
) -> None:
    seen = list(new_file_outcomes(folder, error, half))
    assert len(seen) >= 4
    for outcome in seen:
        assert isinstance(outcome, WriteFailed)
        assert str(outcome) == f"{folder / 'new.jsonl'}: {os.strerror(error)}"


def test_rows_that_cannot_be_made_leave_nothing(folder: Path) -> None:
    def rows() -> Iterator[bytes]:
        yield OLD
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        write_new(folder / "new.jsonl", rows())
    assert names(folder) == []


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(WriteFailed) as caught:
        write_new(tmp_path / "missing" / "new.jsonl", ROWS)
    assert str(tmp_path / "missing" / "new.jsonl") in str(caught.value)
    assert caught.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused(folder: Path) -> None:  # pragma: no cover
    folder.chmod(0o500)
    with pytest.raises(WriteFailed):
        write_new(folder / "new.jsonl", ROWS)
    assert names(folder) == []


def test_a_limit_that_the_system_sets_is_a_full_disk(folder: Path) -> None:
    code = (
        "import resource, sys; from pathlib import Path; from core.errors import WriteFailed\n"
        "from core.transcript.writer import append, write_new\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, (100, {resource.RLIM_INFINITY}))\n"
        "new, old, block = Path(sys.argv[1]), Path(sys.argv[2]), b'x' * 150\n"
        "for write in (lambda: write_new(new, [block]), lambda: append(old, block)):\n"
        "    try: write()\n"
        "    except WriteFailed as error: print(error)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, {resource.RLIM_INFINITY}))\n"
    )
    old = folder / "old.jsonl"
    old.write_bytes(OLD)
    done = subprocess.run(
        [sys.executable, "-c", code, folder / "new", old], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert len(done.stdout.splitlines()) == 2
    assert old.read_bytes() == OLD
    assert names(folder) == ["old.jsonl"]


def test_killed_at_any_step_there_is_no_file_or_a_whole_one_and_the_next_write_is_clean(folder: Path) -> None:
    for step in kills(lambda: write_new(folder / "new.jsonl", ROWS)):
        if (folder / "new.jsonl").exists():
            assert (folder / "new.jsonl").read_bytes() == NEW
            (folder / "new.jsonl").unlink()
        write_new(folder / f"after-{step}", [OLD])
        assert [name for name in names(folder) if not name.startswith("after-")] == []
    assert (folder / "after-5").exists()
    assert (folder / "new.jsonl").read_bytes() == NEW


def test_the_temporary_file_of_a_running_writer_is_left_alone(folder: Path) -> None:
    def rows() -> Iterator[bytes]:
        yield OLD
        write_new(folder / "second", [NEW])
        yield NEW

    write_new(folder / "first", rows())
    assert (folder / "first").read_bytes() == OLD + NEW
    assert names(folder) == ["first", "second"]


def test_a_temporary_file_that_another_process_swept_is_made_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.flock

    def flock(fd: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real)
        for path in folder.iterdir():
            path.unlink()
        real(fd, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    write_new(folder / "new", ROWS)
    assert names(folder) == ["new"]


def test_a_disk_without_locks_is_written_to(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", refuse)
    leftover = folder / ".foldmark-x.tmp"
    leftover.write_bytes(b"")
    write_new(folder / "new", ROWS)
    assert names(folder) == [leftover.name, "new"]


def test_a_folder_that_cannot_be_synced_is_no_error_where_that_needs_no_sync(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def fsync(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not for folders")
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    write_new(folder / "new", ROWS)
    assert names(folder) == ["new"]


# The place of an old one


def test_a_replacement_keeps_the_mode(old: Path) -> None:
    old.chmod(0o640)
    replace(old, iter(ROWS), FileState.of(old))
    assert old.read_bytes() == NEW
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert names(old.parent) == ["old.jsonl"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_replacement_by_root_keeps_the_owner(old: Path) -> None:  # pragma: no cover
    os.chown(old, 1234, 1234)
    replace(old, ROWS, FileState.of(old))
    assert (old.stat().st_uid, old.stat().st_gid) == (1234, 1234)


def test_a_replacement_follows_links(old: Path) -> None:
    link = old.parent / "link.jsonl"
    link.symlink_to(old.name)
    replace(link, ROWS, FileState.of(link))
    assert link.is_symlink()
    assert old.read_bytes() == NEW


def test_a_file_that_changed_since_it_was_read_is_not_replaced(old: Path) -> None:
    state = FileState.of(old)
    appended(old, NEW)
    with pytest.raises(Changed):
        replace(old, ROWS, state)
    assert old.read_bytes() == OLD + NEW


@pytest.mark.parametrize("change", [lambda p: appended(p, NEW), lambda p: p.unlink()])
def test_a_file_that_changes_while_the_new_one_is_written_is_not_replaced(
    old: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object]
) -> None:
    at_call(monkeypatch, "write", lambda: change(old))
    with pytest.raises(Changed):
        replace(old, ROWS, FileState.of(old))
    assert not old.exists() or old.read_bytes() == OLD + NEW
    assert ".foldmark" not in "".join(names(old.parent))


def test_rows_that_arrive_at_the_last_moment_are_carried_over(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_call(monkeypatch, "replace", lambda: appended(old, b'{"late":1}\n'))
    replace(old, ROWS, FileState.of(old))
    assert old.read_bytes() == NEW + b'{"late":1}\n'


def test_a_file_that_is_not_there_is_not_replaced(old: Path) -> None:
    state = FileState.of(old)
    old.unlink()
    with pytest.raises(WriteFailed):
        replace(old, ROWS, state)


@pytest.mark.parametrize(("error", "half"), DISK)
def test_whatever_fails_the_old_file_stays_or_the_new_one_stands(old: Path, error: int, half: bool) -> None:
    seen = []
    for outcome in outcomes(lambda: replace(old, ROWS, FileState.of(old)), error, half):
        seen.append(outcome)
        assert old.read_bytes() == (OLD if outcome else NEW)
        assert names(old.parent) == ["old.jsonl"]
        old.write_bytes(OLD)
    assert sum(isinstance(outcome, WriteFailed) for outcome in seen) >= 5
    assert seen[-1] is None  # the folder could not be synced: both states are right


def test_killed_at_any_step_the_file_is_the_old_or_the_new_one(old: Path) -> None:
    for step in kills(lambda: replace(old, ROWS, FileState.of(old))):
        assert old.read_bytes() in (OLD, NEW)
        old.write_bytes(OLD)
        write_new(old.parent / f"after-{step}", [])
        assert not [name for name in names(old.parent) if name.startswith(".")]
    assert old.read_bytes() == NEW
    assert (old.parent / "after-6").exists()


# A file that stands for the one before


@pytest.mark.parametrize("there", [True, False])
def test_what_is_put_is_private_and_stands_alone(tmp_path: Path, there: bool) -> None:
    path = tmp_path / "new" / "folder" / "a"
    if there:
        make_private(path.parent)
        path.symlink_to(tmp_path / "elsewhere")
    put(path, NEW)
    assert (path.read_bytes(), path.is_symlink()) == (NEW, False)
    assert [stat.S_IMODE(p.stat().st_mode) for p in (path, path.parent, path.parent.parent)] == [0o600, 0o700, 0o700]
    assert names(path.parent) == ["a"]
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(("error", "half"), DISK)
def test_whatever_fails_what_stood_there_stays_or_what_is_put_stands(old: Path, error: int, half: bool) -> None:
    seen = []
    for outcome in outcomes(lambda: put(old, NEW), error, half):
        seen.append(outcome)
        assert old.read_bytes() == (OLD if outcome else NEW)
        assert names(old.parent) == ["old.jsonl"]
        old.write_bytes(OLD)
    assert sum(isinstance(outcome, WriteFailed) for outcome in seen) >= 4


def test_killed_at_any_step_what_stood_there_stays_or_what_is_put_stands(old: Path) -> None:
    for step in kills(lambda: put(old, NEW)):
        assert old.read_bytes() in (OLD, NEW)
        old.write_bytes(OLD)
        put(old.parent / f"after-{step}", b"")
        assert not [name for name in names(old.parent) if name.startswith(".")]
    assert (old.parent / "after-4").exists()


def test_what_cannot_be_removed_is_named(folder: Path) -> None:
    remove(folder / "gone", missing_ok=True)
    for path in (folder, folder / "gone"):
        with pytest.raises(WriteFailed, match=str(path)):
            remove(path)


# A block at the end


def test_a_block_is_appended_and_its_offset_returned(old: Path) -> None:
    assert append(old, NEW, len(OLD)) == len(OLD)
    assert old.read_bytes() == OLD + NEW


def test_a_torn_last_row_is_ended_first(old: Path) -> None:
    old.write_bytes(OLD + b'{"torn')
    offset = append(old, NEW)
    assert old.read_bytes() == OLD + b'{"torn\n' + NEW
    assert old.read_bytes()[offset:] == NEW


def test_an_empty_file_gets_no_line_end(old: Path) -> None:
    old.write_bytes(b"")
    assert append(old, NEW, 0) == 0
    assert old.read_bytes() == NEW


def test_nothing_is_appended_to_a_file_that_grew_since_it_was_read(old: Path) -> None:
    appended(old, NEW)
    with pytest.raises(Changed):
        append(old, NEW, len(OLD))
    assert old.read_bytes() == OLD + NEW


def test_nothing_is_appended_to_a_file_that_is_not_there(folder: Path) -> None:
    with pytest.raises(WriteFailed):
        append(folder / "new.jsonl", NEW)
    assert names(folder) == []


def test_rows_that_arrive_just_before_the_block_show_in_its_offset(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_call(monkeypatch, "write", lambda: appended(old, b'{"late":1}\n'))
    offset = append(old, NEW, len(OLD))
    assert old.read_bytes() == OLD + b'{"late":1}\n' + NEW
    assert old.read_bytes()[offset:] == NEW


@pytest.mark.parametrize("torn", [b"", b'{"torn'])
@pytest.mark.parametrize(("error", "half"), DISK)
def test_whatever_fails_no_byte_is_appended(old: Path, error: int, half: bool, torn: bytes) -> None:
    appended(old, torn)
    seen = []
    for outcome in outcomes(lambda: append(old, NEW), error, half):
        seen.append(outcome)
        assert old.read_bytes() == OLD + torn
    assert [type(outcome) for outcome in seen] == [WriteFailed] * 3


@pytest.mark.parametrize("half", [True, False])
def test_a_block_that_fails_leaves_the_rows_behind_it_whole(
    old: Path, monkeypatch: pytest.MonkeyPatch, half: bool
) -> None:
    late = b'{"late":1}\n'
    real = os.write

    def write(fd: int, data: bytes) -> int:
        written = real(fd, data[: len(data) // 2] if half else data)
        appended(old, late)
        return written

    def fsync(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(WriteFailed):
        append(old, NEW)
    assert [row for row in old.read_bytes().split(b"\n") if row] == [OLD.strip(), late.strip()]


def test_killed_at_any_step_old_rows_stay_and_the_next_block_stands_alone(old: Path) -> None:
    for _ in kills(lambda: append(old, NEW)):
        assert old.read_bytes().startswith(OLD)
        append(old, b'{"next":1}\n')
        assert b'{"next":1}' in old.read_bytes().split(b"\n")
        old.write_bytes(OLD)
    assert old.read_bytes() == OLD + NEW


def test_two_processes_that_append_at_once_lose_and_tear_nothing(old: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from core.transcript.writer import append\n"
        "name = sys.argv[2].encode()\n"
        "sys.stdin.read(1)\n"
        "for n in range(150): append(Path(sys.argv[1]), b''.join(b'%s %d %d\\n' % (name, n, k) for k in range(40)))\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", code, old, name], cwd=REPOSITORY, stdin=subprocess.PIPE)
        for name in ("a", "b")
    ]
    for process in writers:
        assert process.stdin
        process.stdin.write(b"!")
        process.stdin.close()
    assert [process.wait() for process in writers] == [0, 0]
    rows = [row for row in old.read_bytes().split(b"\n") if row]
    assert rows[0] == OLD.strip()
    for name in (b"a", b"b"):
        own = [row for row in rows if row.startswith(name)]
        assert own == [b"%s %d %d" % (name, n, k) for n in range(150) for k in range(40)]
    assert len(rows) == 1 + 2 * 150 * 40


# Locks


HOLD = (
    "import sys; from pathlib import Path; from core.transcript.locks import locked\n"
    "with locked(Path(sys.argv[1]), Path(sys.argv[2])): print('held', flush=True); sys.stdin.read()\n"
)


def holding(path: Path, lock_dir: Path) -> subprocess.Popen[str]:
    """A process that holds the lock until its standard input is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, path, lock_dir],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    return process


def test_a_lock_that_another_process_holds_is_waited_for_and_its_holder_named(old: Path, tmp_path: Path) -> None:
    with holding(old, tmp_path / "locks") as holder:
        with pytest.raises(Locked) as caught, locked(old, tmp_path / "locks", timeout_s=0):
            pass
        assert f"process {holder.pid} since 2" in str(caught.value)
        assert str(old) in str(caught.value)
        with locked(old.parent / "other.jsonl", tmp_path / "locks", timeout_s=0):
            pass


def test_the_lock_of_a_killed_process_is_no_obstacle(old: Path, tmp_path: Path) -> None:
    with holding(old, tmp_path / "locks") as holder:
        holder.kill()
        holder.wait()
        with locked(old, tmp_path / "locks", timeout_s=0):
            pass


def test_a_lock_is_given_back_after_an_error(old: Path, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(old, tmp_path / "locks"):
        raise ZeroDivisionError
    with locked(old, tmp_path / "locks", timeout_s=0):
        pass


def test_all_spellings_of_a_path_share_a_lock(old: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(old.parent)
    with locked(old, tmp_path / "locks"), pytest.raises(Locked), locked(link / old.name, tmp_path / "locks", 0):
        pass


def test_an_unknown_holder_is_another_process(old: Path, tmp_path: Path) -> None:
    with locked(old, tmp_path / "locks"):
        for path in (tmp_path / "locks").glob("*.pid"):
            path.unlink()
        with pytest.raises(Locked) as caught, locked(old, tmp_path / "locks", timeout_s=0):
            pass
    assert "another process" in str(caught.value)


def test_locks_leave_nothing_beside_the_file_and_are_private(old: Path, tmp_path: Path) -> None:
    with locked(old, tmp_path / "state" / "locks"):
        assert names(old.parent) == ["old.jsonl"]
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert [path.suffix for path in (tmp_path / "state" / "locks").iterdir()] == [".lock"]


def test_a_folder_for_locks_that_cannot_be_made_is_named(old: Path) -> None:
    with pytest.raises(WriteFailed) as caught, locked(old, old / "locks"):
        pass
    assert str(old / "locks") in str(caught.value)


def test_a_private_folder_that_another_process_makes_first_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_call(monkeypatch, "mkdir", lambda: os.mkdir(tmp_path / "a"))
    make_private(tmp_path / "a")
    assert (tmp_path / "a").is_dir()


# Rows that are being written


@pytest.mark.parametrize(("age_s", "end", "waits"), [(1, b"", True), (3, b"", False), (1, b"\n", False)])
def test_a_last_row_without_an_end_is_left_alone_while_it_is_young(
    tmp_path: Path, age_s: float, end: bytes, waits: bool
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b'{"half' + end)
    written = path.stat().st_mtime
    if waits:
        with pytest.raises(Changed, match="is being written"):
            append(path, b"{}\n", clock=lambda: written + age_s)
        assert path.read_bytes() == b'{"half'
        return
    append(path, b"{}\n", clock=lambda: written + age_s)
    assert path.read_bytes() == b'{"half\n{}\n'


def test_a_pipe_under_the_name_of_a_temporary_file_stops_no_write(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".foldmark-x.tmp")
    write_new(tmp_path / "a", [b"x"])
    assert (tmp_path / "a").read_bytes() == b"x"


# Folders that are held


def test_a_folder_that_another_holds_too_long_is_locked_and_free_afterwards(tmp_path: Path) -> None:
    folder = tmp_path / "session" / "store"
    with locks.holding(folder):
        with pytest.raises(Locked), locks.holding(folder, timeout_s=0):
            pass
        assert folder.is_dir()  # who holds it may be about to write
    with locks.holding(folder):
        assert folder.is_dir()
    assert not folder.parent.exists()


def test_a_folder_that_is_made_anew_while_it_is_waited_for_is_the_one_that_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, real, steps = tmp_path / "store", fcntl.flock, [folder_made_anew, Path.rmdir]

    def flock(fd: int, how: int) -> None:
        if steps:
            steps.pop()(folder)
        real(fd, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with locks.holding(folder):
        fd = os.open(folder, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            real(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(fd)


def folder_made_anew(folder: Path) -> None:
    folder.rename(folder.with_name("old"))
    folder.mkdir()


def test_a_disk_without_locks_holds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(fd: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", flock)
    with locks.holding(tmp_path / "store"), locks.holding(tmp_path / "store"):
        pass
