"""Whether a session is in use: open in a client, or just being written."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from core.errors import InputError
from core.model import UNDECODABLE
from core.transcript.projects import read_small


@dataclass(frozen=True, slots=True)
class FileState:
    """What changes when a file is written (`size` in bytes, `mtime_ns`) or replaced (`inode`).

    Two states of one file that differ: somebody wrote between the two looks.
    """

    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, file: Path | int) -> FileState:
        """The state of a path (links are followed) or of an open file; raises InputError when there is none."""
        try:
            stat = os.stat(file)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"{file}: {reason}", "check the path and who may read it") from None
        return cls(stat.st_size, stat.st_mtime_ns, stat.st_ino)


class _Client(msgspec.Struct, rename="camel"):
    pid: int
    session_id: str


_decode_client = msgspec.json.Decoder(_Client).decode


def open_in(claude_dir: Path, session_id: str) -> int | None:
    """The process id of a running client that has the session open, or None."""
    return open_sessions(claude_dir).get(session_id.casefold())


def open_sessions(claude_dir: Path) -> dict[str, int]:
    """The ids, in lower case, of all sessions that a running client has open, with its process id.

    A client registers itself in `<claude dir>/sessions/<pid>.json` and takes the file away when it ends; that of a
    client that was killed stays, so the process must be there too.  Unreadable entries count as none.
    """
    found: dict[str, int] = {}
    for path in sorted((claude_dir / "sessions").glob("*.json")):
        try:
            client = _decode_client(read_small(path))
        except (OSError, *UNDECODABLE):
            continue
        if _is_running(client.pid):
            found.setdefault(client.session_id.casefold(), client.pid)
    return found


def _is_running(pid: int) -> bool:
    """Whether another process has the id; one that we may not signal is one."""
    if pid <= 0 or pid == os.getpid():  # 0 and below mean groups; our own id is a dead client's, given out again
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
