"""Locks between Foldmark's own processes: one at a time writes a transcript, or into a folder of stored bodies."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from core.errors import Locked, WriteFailed
from core.transcript.writer import failing, make_private

_TRY_S = 0.02
"""How long a folder that another process holds is waited for before it is tried again."""


@contextlib.contextmanager
def locked(path: Path, lock_dir: Path, timeout_s: float = 10.0) -> Iterator[None]:
    """Keep other Foldmark processes from writing the file; `lock_dir` is made when it is missing.

    The system drops the lock of a process that dies.  Raises Locked when the lock is held for longer than
    `timeout_s`, and WriteFailed when the lock cannot be made.
    """
    import filelock  # brings asyncio along: only those who write pay for it

    name = hashlib.sha256(os.path.realpath(path).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    holder = lock_dir / f"{name}.pid"
    make_private(lock_dir)
    with failing(lock_dir):
        lock = filelock.FileLock(lock_dir / f"{name}.lock", mode=0o600)
        try:
            lock.acquire(timeout=timeout_s)
        except filelock.Timeout:
            raise Locked(f"{path} is being written by {_held_by(holder)}", "wait until it is done") from None
    try:
        with contextlib.suppress(OSError):  # only told to those who wait
            holder.write_text(str(os.getpid()), encoding="utf-8")
        yield
    finally:
        with contextlib.suppress(OSError):
            holder.unlink()
        lock.release()


@contextlib.contextmanager
def holding(folder: Path, timeout_s: float = 10.0) -> Iterator[None]:
    """Make a folder (see `make_private`) and hold it: whoever holds it too waits until it is let go.

    The lock is one on the folder itself, so it needs no file and no agreement on a place; a disk without locks holds
    nothing.  A folder that is empty in the end is not left, nor is the one around it.

    Raises Locked when another holds it for longer, WriteFailed, also for a link in the folder's place.
    """
    fd = None
    try:
        while fd is None:
            make_private(folder)
            with failing(folder), contextlib.suppress(FileNotFoundError):  # removed meanwhile, by who held it before
                fd = _hold(folder, timeout_s)
    except WriteFailed:
        drop_empty(folder)
        raise
    try:
        yield
    finally:
        drop_empty(folder)  # who waits for it makes it anew
        os.close(fd)


def drop_empty(folder: Path) -> None:
    """Remove a folder and the one around it, as far as there is nothing in them."""
    for each in (folder, folder.parent):
        with contextlib.suppress(OSError):  # there is something in it
            each.rmdir()


def _hold(folder: Path, timeout_s: float) -> int | None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _lock(fd, folder, timeout_s)
        if os.path.samestat(os.fstat(fd), os.stat(folder)):
            return fd
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)  # another folder of that name, made meanwhile
    return None


def _lock(fd: int, folder: Path, timeout_s: float) -> None:
    for _ in range(1 + round(timeout_s / _TRY_S)):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(_TRY_S)
        except OSError:  # a disk without locks
            return
    raise Locked(f"{folder} is being written by another process", "wait until it is done")


def _held_by(holder: Path) -> str:
    try:
        since = datetime.fromtimestamp(holder.stat().st_mtime, UTC)
        return f"process {holder.read_text(encoding='utf-8')} since {since:%Y-%m-%d %H:%M:%S} UTC"
    except (OSError, UnicodeDecodeError):
        return "another process"
