"""The front of a large file, read by a second process while this one reads the rest.

Scanning a file that was never compacted is bound by one core; a second one nearly halves it.  It is only done where
it is safe (a process with one thread, a system that can fork), and never needed: without it the result is the same.
"""

from __future__ import annotations

import mmap
import os
import signal
import threading
from collections.abc import Callable, Iterator

import msgspec

from core.transcript.scanner import Scan

_SIZE_BYTES = 8
"""Of a message: how long the next scan is; 0 is the end of all."""

_encode = msgspec.msgpack.encode
_decode = msgspec.msgpack.Decoder(Scan).decode


def can_fork() -> bool:
    """Whether a second process can be had, and would be of use."""
    return threading.active_count() == 1 and (os.cpu_count() or 1) > 1


class Front:
    """Scans that a process of its own makes; `close` ends it, finished or not.

    They lie in memory that both processes see, of at most `room_bytes`, so that neither waits for the other; a pipe
    says how long each is.  Raises `OSError` where the system has no process or no memory left.
    """

    def __init__(self, scans: Callable[[], Iterator[Scan]], room_bytes: int) -> None:
        self._memory = mmap.mmap(-1, room_bytes)
        self._sizes, out = os.pipe()
        try:
            self._pid = os.fork()
        except OSError:
            os.close(self._sizes)
            raise
        else:
            if not self._pid:  # pragma: no cover - the second process
                os.close(self._sizes)  # else it would wait for ever for a reader that is gone
                _work(scans, self._memory, out)
        finally:
            os.close(out)

    def scans(self) -> list[Scan] | None:
        """All that it makes, each taken over as soon as it is there; None if it failed."""
        found: list[Scan] = []
        at = 0
        with memoryview(self._memory) as memory:
            while message := os.read(self._sizes, _SIZE_BYTES):
                size = int.from_bytes(message)
                if not size:
                    return found
                found.append(_decode(memory[at : at + size]))
                at += size
        return None

    def close(self) -> None:
        """Ends the process."""
        os.close(self._sizes)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        self._memory.close()


def _work(
    scans: Callable[[], Iterator[Scan]], memory: mmap.mmap, out: int
) -> None:  # pragma: no cover - runs in the second process
    """Hands over each scan and leaves, past all that the first process would do at its end."""
    try:
        for scan in scans():
            encoded = _encode(scan)
            memory.write(encoded)  # raises where there is no room: then it failed
            os.write(out, len(encoded).to_bytes(_SIZE_BYTES))
        os.write(out, bytes(_SIZE_BYTES))
    finally:
        os._exit(0)
