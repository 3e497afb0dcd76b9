"""Keep the notes of many sessions up to date: for a timer, which may run it as often as it likes.

A session whose transcript is as it was when it was last looked at is not opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.errors import ApiError, Locked, UnknownFormat, WrongFormat
from core.memory.cadence import Cadence
from core.memory.extract import Extractor
from core.memory.files import MemoryFiles
from core.memory.limits import DEFAULT_LIMITS, MemoryLimits
from core.transcript.live import FileState
from core.transcript.projects import SessionFile
from core.transcript.records import is_as_made

if TYPE_CHECKING:
    from core.service.memory import MemoryUpdate

_BYTES_PER_TOKEN = 2
"""The least that a row takes on the disk for each token of its message: a smaller file cannot have enough of them."""
_CAPS = ("spend", "deadline")
_OVER = (*_CAPS, "cancelled", "auth")
"""Kinds of errors after which no other session would get an answer."""


@dataclass(frozen=True, slots=True)
class Which:
    """Which sessions are looked at: by when they were written last, in seconds since 1970."""

    before: float | None = None
    """Idle since then."""
    since: float | None = None


ALL = Which()


@dataclass(frozen=True, slots=True)
class Refreshed:
    """One session, and what was done, or the error that kept it from being done."""

    file: SessionFile
    outcome: MemoryUpdate | Exception
    is_cap: bool = False
    """It was a cap that kept it: the next run goes on."""


def refresh(
    files: Iterable[SessionFile],
    extractor: Extractor,
    limits: MemoryLimits = DEFAULT_LIMITS,
    which: Which = ALL,
    out_of_time: Callable[[], bool] = lambda: False,
    *,
    named: bool = True,
) -> Iterator[Refreshed]:
    """Update the notes where that is due, session by session; yields those where something was done or failed.

    A session that another process works on is passed over: it is being done.  So is what Foldmark made, until somebody
    goes on there, and, where the files were not `named` but found, what is no session of the client.  Ends at the first
    cap that is reached.
    """
    for file in files:
        if out_of_time():
            return
        try:
            if not _may_be_due(file, extractor, limits.cadence or extractor.cadence, which):
                continue
            from core.service.memory import update  # paid for only where something is to be done

            done = update(file, extractor, limits, when_due=True)
        except Locked:
            continue
        except (UnknownFormat, WrongFormat) as error:
            if named:
                yield Refreshed(file, error)
        except ApiError as error:
            yield Refreshed(file, error, is_cap=error.kind in _CAPS)
            if error.kind in _OVER:
                return
        except Exception as error:  # noqa: BLE001 (what is wrong with one session must not end the others)
            yield Refreshed(file, error)
        else:
            if done.changed:
                yield Refreshed(file, done)


def _may_be_due(file: SessionFile, extractor: Extractor, cadence: Cadence, which: Which) -> bool:
    """Whether the session is worth a look, by its file alone."""
    if which.before is not None and file.mtime > which.before:
        return False
    if which.since is not None and file.mtime < which.since:
        return False
    if file.size_bytes < _BYTES_PER_TOKEN * cadence.first_tokens:
        return False
    files = MemoryFiles.beside(file)
    state = files.state()
    now = FileState.of(file.path)
    if (state.size, state.mtime_ns) != (now.size, now.mtime_ns):
        return not is_as_made(file)  # what a copy says, its source said
    return state.waits_for not in ("", extractor.name) or (state.updates > 0 and not files.notes_path.exists())
