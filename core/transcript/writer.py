"""Writing that loses nothing: a new file or none, the old file or the new one, a whole block or no byte of it.

What is written is on the disk (fsync) when a function returns.  When it raises `StorageError`, what stood there
before is as it was, and no temporary file is left; a killed process may leave one, which the next write into the
same folder removes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from core.errors import Changed, InputError, WriteFailed
from core.transcript.live import FileState

BATCH_BYTES = 1 << 20
"""Pieces are joined up to this size before they are written: a system call per row costs more than the row."""
HALF_WRITTEN_S = 2.0
"""How old a last row without an end has to be to count as torn: a client writes a row in far less time."""
_TEMP_PREFIX, _TEMP_SUFFIX = ".foldmark-", ".tmp"
"""Hidden, and no transcript by its name: clients read every `*.jsonl` of a project folder."""
_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK)
"""How file systems without hard links (FAT, some network shares) answer."""
_HINTS = {
    errno.ENOSPC: "free some space, or write to another disk",
    errno.EDQUOT: "free some of the quota, or write to another disk",
    errno.EACCES: "name a folder that you may write to",
    errno.EPERM: "name a folder that you may write to",
    errno.EROFS: "name a folder that you may write to",
    errno.ENOENT: "make the folder first",
    errno.EEXIST: "remove the file first, or take another name or folder",
}


def write_new(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a new file (mode 0600) of the pieces, as they come; nobody sees it before it is whole.

    Raises WriteFailed, also when there is a file of that name: nothing is overwritten.
    """
    with failing(path), _temporary(path) as (fd, temp):
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        _write_all(fd, pieces)
        os.fsync(fd)
        _publish(temp, path)
        try:
            _sync_folder(path.parent)
        except OSError:
            path.unlink()
            raise


def put(path: Path, data: bytes) -> None:
    """Write a file (mode 0600), with its folders, whether or not one stands there; a link there is replaced itself.

    Raises WriteFailed.
    """
    make_private(path.parent)
    with failing(path), _temporary(path) as (fd, temp):
        _write_all(fd, [data])
        os.fsync(fd)
        os.replace(temp, path)
    with contextlib.suppress(OSError):  # as of a replacement
        _sync_folder(path.parent)


def remove(path: Path, missing_ok: bool = False) -> None:
    """Remove a file; raises WriteFailed."""
    with failing(path):
        path.unlink(missing_ok)


def replace(path: Path, pieces: Iterable[bytes], expected: FileState) -> None:
    """Put the pieces, as they come, in the place of a file; its mode and owner stay, links to it are followed.

    `expected` is the state in which the file was read.  Rows that another process appends while the new file takes
    its place are carried over.  Raises Changed when the file is not as expected any more, WriteFailed.
    """
    path = Path(os.path.realpath(path))
    with failing(path):
        old = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _replace(path, old, pieces, expected)
        finally:
            os.close(old)


def _replace(path: Path, old: int, pieces: Iterable[bytes], expected: FileState) -> None:
    _must_be(path, expected)
    with _temporary(path) as (fd, temp):
        before = os.fstat(old)
        with contextlib.suppress(PermissionError):  # only root can give files away
            os.fchown(fd, before.st_uid, before.st_gid)
        os.fchmod(fd, stat.S_IMODE(before.st_mode))
        _write_all(fd, pieces)
        os.fsync(fd)
        _must_be(path, expected)
        os.replace(temp, path)
        if late := os.pread(old, max(0, os.fstat(old).st_size - expected.size), expected.size):
            append(path, late)
    # A folder that cannot be synced may show the old file after a power cut: one of two right states, so no error.
    with contextlib.suppress(OSError):
        _sync_folder(path.parent)


def _must_be(path: Path, expected: FileState) -> None:
    try:
        same = FileState.of(path) == expected
    except InputError:
        same = False
    if not same:
        raise _changed(path)


def _changed(path: Path) -> Changed:
    return Changed(f"{path} was written by another program meanwhile", "run the command again")


def append(path: Path, block: bytes, expected_size: int | None = None, clock: Callable[[], float] | None = None) -> int:
    """Append a block of rows in one write and return its offset; a file that lacks the last line end gets it first.

    `expected_size` is the size of the file, in bytes, as it was read.  Rows of others are safe: what they append at
    the same time stands before the block (the offset is then larger than expected) or behind it.  A write of theirs
    that is seen half done looks like a row without an end, and would be cut in two: with a `clock` (seconds since
    1970), such a row is left alone as long as it is younger than `HALF_WRITTEN_S`.

    Raises Changed when the file has another size or its last row is being written, WriteFailed.
    """
    with failing(path):
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        try:
            found = os.fstat(fd)
            size = found.st_size
            if expected_size is not None and size != expected_size:
                raise _changed(path)
            line_end = b"\n" if size and os.pread(fd, 1, size - 1) != b"\n" else b""
            if line_end and clock and abs(clock() - found.st_mtime) < HALF_WRITTEN_S:
                raise Changed(f"{path} ends in a row that is being written", "run the command again in a moment")
            return _append(fd, line_end + block) + len(line_end)
        finally:
            os.close(fd)


def _append(fd: int, data: bytes) -> int:
    written = os.write(fd, data)
    offset = os.lseek(fd, 0, os.SEEK_CUR) - written
    try:
        if written < len(data):
            raise OSError(errno.ENOSPC, f"only {written} of {len(data)} bytes were written")
        os.fsync(fd)
    except OSError:
        _take_back(fd, offset, written)
        raise
    return offset


def _take_back(fd: int, offset: int, size: int) -> None:
    """Undo a write: cut it off, or, when rows of another process stand behind it, leave empty lines in its place."""
    if os.fstat(fd).st_size == offset + size:
        os.ftruncate(fd, offset)
        return
    fcntl.fcntl(fd, fcntl.F_SETFL, 0)  # with O_APPEND, pwrite would write to the end as well
    os.pwrite(fd, b"\n" * size, offset)


def make_private(folder: Path) -> None:
    """Make a folder and those above it that are missing, mode 0700 whatever the umask; raises WriteFailed."""
    if folder.is_dir():
        return
    make_private(folder.parent)
    with failing(folder):
        with contextlib.suppress(FileExistsError):  # made meanwhile; a file in its place fails at the first use
            os.mkdir(folder, 0o700)
        _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    """Makes the names in a folder last."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems that cannot, and need not
            raise
    finally:
        os.close(fd)


@contextlib.contextmanager
def failing(path: Path) -> Iterator[None]:
    """Turns what the system refuses into a WriteFailed that names the path and the reason."""
    try:
        yield
    except OSError as error:
        raise WriteFailed(f"{path}: {error.strerror or error}", _HINTS.get(error.errno or 0, "")) from None


@contextlib.contextmanager
def _temporary(path: Path) -> Iterator[tuple[int, str]]:
    """An open temporary file (mode 0600) beside `path`; it is gone afterwards, unless it was renamed."""
    _sweep(path.parent)
    fd, temp = _make_temporary(path.parent)
    try:
        yield fd, temp
    finally:
        os.close(fd)
        with contextlib.suppress(OSError):
            os.unlink(temp)


def _make_temporary(folder: Path) -> tuple[int, str]:
    while True:
        fd, temp = tempfile.mkstemp(_TEMP_SUFFIX, _TEMP_PREFIX, folder)
        with contextlib.suppress(OSError):  # a disk without locks: nothing is swept there
            fcntl.flock(fd, fcntl.LOCK_EX)
        if os.fstat(fd).st_nlink:
            return fd, temp
        os.close(fd)  # another process swept it before we held the lock


def _sweep(folder: Path) -> None:
    """Removes what killed processes left: temporary files that nobody holds a lock on."""
    for temp in folder.glob(f"{_TEMP_PREFIX}*{_TEMP_SUFFIX}"):
        with contextlib.suppress(OSError):
            fd = os.open(temp, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not block
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(temp)
            finally:
                os.close(fd)


def _publish(temp: str, path: Path) -> None:
    """Gives a whole file its name; fails when the name is taken, also when it was taken a moment ago."""
    try:
        os.link(temp, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        try:
            os.replace(temp, path)
        except OSError:
            path.unlink()
            raise


def _write_all(fd: int, pieces: Iterable[bytes]) -> None:
    for batch in _batches(pieces):
        view = memoryview(batch)
        while view:
            view = view[os.write(fd, view) :]


def _batches(pieces: Iterable[bytes]) -> Iterator[bytes]:
    batch, size = [], 0
    for piece in pieces:
        batch.append(piece)
        size += len(piece)
        if size >= BATCH_BYTES:
            yield b"".join(batch)
            batch, size = [], 0
    yield b"".join(batch)
