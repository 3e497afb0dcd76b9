"""The front of a large file, read by a second process while this one reads the rest.

Scanning a file that was never compacted is bound by one core; a second one nearly halves it.  It is only done where
it is safe (a process with one thread, a system that can fork), and never needed: without it the result is the same.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

import msgspec

from core.transcript.scanner import Scan

_decode = msgspec.msgpack.Decoder(Scan).decode


def can_fork() -> bool:
    """Whether a second process can be had, and would be of use."""
    return hasattr(os, "fork") and threading.active_count() == 1 and (os.cpu_count() or 1) > 1


class Front:
    """A scan that goes on in a process of its own; `close` ends it, finished or not."""

    def __init__(self, scanned: Callable[[], Scan]) -> None:
        self._pipe, out = os.pipe()
        self._pid = os.fork()
        if not self._pid:  # pragma: no cover - the second process
            os.close(self._pipe)  # else it would wait for ever for a reader that is gone
            _work(scanned, out)
        os.close(out)

    def result(self) -> Scan | None:
        """What was found, as soon as it is; None if the process failed."""
        pieces = []
        while piece := os.read(self._pipe, 1 << 20):
            pieces.append(piece)
        try:
            return _decode(b"".join(pieces))
        except msgspec.DecodeError:
            return None

    def close(self) -> None:
        """Ends the process."""
        os.close(self._pipe)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _work(scanned: Callable[[], Scan], out: int) -> None:  # pragma: no cover - runs in the second process
    """Writes a scan to the pipe and leaves, past all that the first process would do at its end."""
    try:
        with open(out, "wb") as pipe:
            pipe.write(msgspec.msgpack.encode(scanned()))
    finally:
        os._exit(0)
