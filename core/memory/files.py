"""The notes of a session on the disk: beside its transcript, one writer at a time, the old file or the new one.

    <session id>/session-memory/notes.md      the notes
                                archive.md    what found no room in them any more, appended
                                state.json    what the next update has to know, and a person has not

The notes alone say what they cover: killed between two of these writes, they are right.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from core.errors import Changed, Damaged
from core.memory.markdown import parse, render, shown
from core.memory.notes import Notes
from core.memory.overflow import Dropped
from core.model import UNDECODABLE
from core.transcript import writer
from core.transcript.live import FileState
from core.transcript.locks import holding
from core.transcript.ordinary import open_ordinary, refuse_links
from core.transcript.projects import SessionFile, own_folder

FOLDER, NOTES, ARCHIVE, STATE = "session-memory", "notes.md", "archive.md", "state.json"
_MOST_BYTES = 4 << 20
"""Notes have some 36 kB; a person may write more, but not this."""


class State(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What an update leaves for the next one."""

    size: int = 0
    """Of the transcript when all of it was looked at, in bytes."""
    mtime_ns: int = 0
    waits_for: str = ""
    """Who found too little in it to write about; "" where the notes cover all of it."""
    updates: int = 0
    calls: int = 0
    """Of a model, in all."""
    tokens: int = 0
    """That these were charged for."""
    failures: int = 0
    """One after the other."""
    failed_turns: int = 0
    """How many prompts the session had at the last one."""

    def looked_at(self, file: FileState, waits_for: str = "") -> State:
        """The state after a look at the whole transcript."""
        return msgspec.structs.replace(self, size=file.size, mtime_ns=file.mtime_ns, waits_for=waits_for)


@dataclass(frozen=True, slots=True)
class Held:
    """The notes as they were read; whoever writes them says that they are still the same."""

    notes: Notes
    exists: bool
    sha256: str


@dataclass(frozen=True, slots=True)
class MemoryFiles:
    """The folder of one session's notes; it need not exist before something is written."""

    folder: Path
    session: str

    @classmethod
    def beside(cls, file: SessionFile) -> MemoryFiles:
        """The notes of the session in a transcript."""
        return cls(own_folder(file.path) / FOLDER, file.id)

    @property
    def notes_path(self) -> Path:
        """The notes themselves."""
        return self.folder / NOTES

    def read(self) -> Held:
        """The notes; new ones, of this session, where there are none.  Raises Damaged for what is no file."""
        content = self._read(NOTES)
        if content is None:
            return Held(Notes(self.session), exists=False, sha256=_sha256(b""))
        return Held(parse(content.decode("utf-8", "replace")), exists=True, sha256=_sha256(content))

    def state(self) -> State:
        """What the last update left; the first state where there is none, or none that can be read."""
        with contextlib.suppress(*UNDECODABLE):
            return msgspec.json.decode(self._read(STATE) or b"{}", type=State)
        return State()

    @contextlib.contextmanager
    def locked(self, timeout_s: float) -> Iterator[None]:
        """Keep other updates of the same notes away; the system lets go of what a dead process held.

        An empty folder is not left.  Raises Locked when it takes longer, WriteFailed, Damaged.
        """
        self._refuse_links()
        with holding(self.folder, timeout_s):
            yield

    def save(self, held: Held, notes: Notes, dropped: Sequence[Dropped], state: State) -> State:
        """Write notes in the place of those that were read, and the state; what left the notes is archived first.

        Raises Changed when the notes are not those that were read any more, or are another session's: then nothing
        was written over.  Raises WriteFailed.
        """
        if notes.session != self.session:
            raise Changed(f"{self.notes_path} holds notes of session {notes.session or '?'}", "move the file away")
        content = render(notes).encode()
        self._must_be(held)
        self._archive(notes.update, dropped)
        before = self._state_of(NOTES)
        self._must_be(held)
        self._write(NOTES, content, before)
        state = msgspec.structs.replace(state, updates=notes.update)
        self.save_state(state)
        return state

    def save_state(self, state: State) -> None:
        """Write the state alone.  Raises WriteFailed."""
        writer.make_private(self.folder)
        self._write(STATE, msgspec.json.encode(state) + b"\n", self._state_of(STATE))

    def _must_be(self, held: Held) -> None:
        content = self._read(NOTES)
        if (content is not None) != held.exists or _sha256(content or b"") != held.sha256:
            raise Changed(f"{self.notes_path} was written meanwhile", "run the command again")

    def _archive(self, update: int, dropped: Sequence[Dropped]) -> None:
        old = self._read(ARCHIVE)
        known = (old or b"").decode("utf-8", "replace")
        blocks = [f"{shown(replace(d.item, status=d.item.status or d.reason))}\n" for d in dropped]
        blocks = [block for block in dict.fromkeys(blocks) if block not in known]  # else written before a crash
        if not blocks:
            return
        content = f"\n## Update {update}\n\n{''.join(blocks)}".encode()
        if old is None:
            title = f"# What left the notes of session {self.session}\n".encode("utf-8", "replace")
            writer.write_new(self.folder / ARCHIVE, [title, content])
        else:
            writer.append(self.folder / ARCHIVE, content)

    def _state_of(self, name: str) -> FileState | None:
        path = self.folder / name
        return FileState.of(path) if os.path.lexists(path) else None

    def _write(self, name: str, content: bytes, before: FileState | None) -> None:
        if before is None:
            writer.write_new(self.folder / name, [content])
        else:
            writer.replace(self.folder / name, [content], before)

    def _read(self, name: str) -> bytes | None:
        """The content of a file of the folder, which no link leads out of; None where there is none."""
        self._refuse_links()
        path = self.folder / name
        strange = Damaged(f"{path} is not what Foldmark wrote there", "look at it, and move it away")
        try:
            file = open_ordinary(path, follow_links=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EINVAL):
                raise strange from None
            raise Damaged(f"{path}: {error.strerror}", "check who may read it") from None
        with file:
            if name != ARCHIVE and os.fstat(file.fileno()).st_size > _MOST_BYTES:
                raise strange
            return file.read()

    def _refuse_links(self) -> None:
        refuse_links(self.folder.parent, self.folder)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
