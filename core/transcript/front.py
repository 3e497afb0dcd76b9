"""The front of a large file, read by a second process while this one reads the rest, until they meet.

Scanning a file that was never compacted is bound by one core; a second one nearly halves it, as far as it is free.
It is only done where it is safe (a process with one thread, a system that can fork), and never needed: without it the
result is the same.
"""

from __future__ import annotations

import mmap
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from struct import Struct

import msgspec

from core.transcript.scanner import Scan

_MESSAGE = Struct("QQ")
"""Up to which byte the file was read, and how long the scan of that piece is."""
_MANY_BYTES = 4096 * _MESSAGE.size
"""Of messages that are taken at once: a pipe holds no more."""

_encode = msgspec.msgpack.encode
_decode = msgspec.msgpack.Decoder(Scan).decode


def can_fork() -> bool:
    """Whether a second process can be had, and would be of use."""
    return threading.active_count() == 1 and (os.cpu_count() or 1) > 1


class Front:
    """Scans of the pieces of a file, from its begin on, that a process of its own makes, until it is closed.

    They lie in memory that both processes see, of at most `room_bytes`, so that neither waits for the other; a pipe
    says how far it is.  It may fail at any time: what it has said by then holds.  Raises `OSError` where the system
    has no process or no memory left.
    """

    def __init__(self, scans: Callable[[], Iterator[tuple[int, Scan]]], room_bytes: int) -> None:
        self._memory = mmap.mmap(-1, room_bytes)
        self._done: list[tuple[int, int]] = []
        self._messages, out = os.pipe()
        try:
            self._pid = os.fork()
        except OSError:
            os.close(self._messages)
            raise
        else:
            if not self._pid:  # pragma: no cover - the second process
                os.close(self._messages)  # else it would wait for ever for a reader that is gone
                _work(scans, self._memory, out)
            os.set_blocking(self._messages, False)
        finally:
            os.close(out)

    def reached(self) -> int:
        """Up to which byte it has read the file by now."""
        with suppress(BlockingIOError):
            while messages := os.read(self._messages, _MANY_BYTES):
                self._done += _MESSAGE.iter_unpack(messages)
        return self._done[-1][0] if self._done else 0

    def scans(self, end: int) -> list[Scan]:
        """What it found up to a byte that it had reached."""
        found: list[Scan] = []
        at = 0
        with memoryview(self._memory) as memory:
            for reached, size in self._done:
                if reached <= end:
                    found.append(_decode(memory[at : at + size]))
                at += size
        return found

    def stop(self) -> None:
        """Ends the process: what it would go on to read takes time from this one.  What it found is still there."""
        os.kill(self._pid, signal.SIGKILL)

    def close(self) -> None:
        """Ends the process, and gives back what it had."""
        self.stop()
        os.waitpid(self._pid, 0)
        os.close(self._messages)
        self._memory.close()


def _work(
    scans: Callable[[], Iterator[tuple[int, Scan]]], memory: mmap.mmap, out: int
) -> None:  # pragma: no cover - runs in the second process
    """Hands over each scan and leaves, past all that the first process would do at its end."""
    try:
        for reached, scan in scans():
            encoded = _encode(scan)
            memory.write(encoded)  # raises where there is no room: then it failed
            os.write(out, _MESSAGE.pack(reached, len(encoded)))
    finally:
        os._exit(0)
