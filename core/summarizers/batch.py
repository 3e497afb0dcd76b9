"""Many summaries through the Message Batches API: asked for together, at half the price, collected when they are there.

A request is known by the digest of its bytes.  What was submitted is noted in a folder, so that a run which was
ended, or had no time left, is gone on with by the next one: the same session asks for the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from core.api.batches import Caller, Outcome, has_ended, outcomes, portions, submit
from core.api.metered import billed_usage
from core.errors import ApiError, SummaryPending
from core.model import JSON, UNDECODABLE
from core.summarizers.answer import read
from core.summarizers.base import Summary, SummaryRequest
from core.summarizers.compose import composed, redacted
from core.summarizers.model import ModelSummarizer, left_out_remarks
from core.transcript.locks import holding
from core.transcript.writer import write_new

POLL_S = 30.0
"""Most batches are done within the hour."""
_HELD_S = 120.0
"""A submission may send 200 MB."""


class _Note(msgspec.Struct, frozen=True):
    """What is written down of a batch."""

    batch: str
    requests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long to wait for batches; `clock` gives seconds that only grow."""

    clock: Callable[[], float]
    sleep: Callable[[float], None]
    deadline_s: float = 3_600.0


class BatchSummarizer:
    """A summariser that is asked twice: the first time it takes the request down, then it has the summary.

        first run over all sessions: each raises `SummaryPending`;  submit();  wait();  second run

    `folder` holds the notes of batches that are not used up.
    """

    name = "batch"

    def __init__(self, caller: Caller, model: ModelSummarizer, folder: Path) -> None:
        self._caller, self._model, self._folder = caller, model, folder
        self._wanted: dict[str, Mapping[str, JSON]] = {}
        self._known: dict[str, Outcome] = {}

    def summarize(self, request: SummaryRequest) -> Summary:
        """The summary, if its batch has ended.

        Raises `SummaryPending` if not, `ApiError` or `SummaryRejected` if that gave none.
        """
        safe = redacted(request)
        quoted = self._model.fitted(safe)
        body = self._model.plain_body(safe, quoted)
        ident = hashlib.sha256(msgspec.json.encode(body)).hexdigest()[:40]
        outcome = self._known.get(ident)
        if outcome is None:
            self._wanted[ident] = body
            raise SummaryPending("the summary is asked for in a batch, and not there yet", "run the same command again")
        if isinstance(outcome, ApiError):
            raise outcome
        usage, remarks = billed_usage(outcome), left_out_remarks(quoted)
        return composed(safe, read(outcome), self.name, outcome.model, usage, remarks)

    def submit(self) -> int:
        """Submits all that was asked for and is in no batch yet: how many requests.  Raises `ApiError`."""
        with holding(self._folder, _HELD_S):  # of two runs at once, the second finds them submitted
            submitted = {ident for _, note in self._notes() for ident in note.requests}
            new = {ident: body for ident, body in self._wanted.items() if ident not in submitted}
            for lot in portions(new):
                note = _Note(submit(self._caller, lot), tuple(lot))
                write_new(self._folder / f"{note.batch}.json", [msgspec.json.encode(note)])
        return len(new)

    def give_up(self, error: ApiError) -> None:
        """What is in no batch failed for good: whoever asks for it gets the error."""
        submitted = {ident for _, note in self._notes() for ident in note.requests}
        self._known.update({ident: error for ident in self._wanted if ident not in submitted})

    def wait(self, waiting: Waiting) -> bool:
        """Whether all batches of the folder that hold something wanted ended in time; their outcomes are then known.

        Raises `ApiError`.
        """
        end = waiting.clock() + waiting.deadline_s
        open_notes = [note for _, note in self._notes() if {*note.requests} & self._wanted.keys()]
        while open_notes:
            open_notes = [note for note in open_notes if not self._collected(note)]
            if open_notes and waiting.clock() + POLL_S > end:
                return False
            if open_notes:
                waiting.sleep(POLL_S)
        return True

    def forget(self) -> None:
        """Removes the notes of batches whose outcomes are known: they were used, or nobody asks for them."""
        for path, note in self._notes():
            if {*note.requests} <= self._known.keys():
                path.unlink(missing_ok=True)

    def _collected(self, note: _Note) -> bool:
        try:
            if not has_ended(self._caller, note.batch):
                return False
            found = outcomes(self._caller, note.batch)
        except ApiError as error:
            if error.kind != "request":
                raise
            found = {}  # the API has forgotten it
        lost = ApiError("request", f"the batch {note.batch} says nothing of this request", "run the same command again")
        self._known.update({ident: found.get(ident, lost) for ident in note.requests})
        return True

    def _notes(self) -> Iterator[tuple[Path, _Note]]:
        for path in sorted(path for path in self._folder.glob("*.json") if path.is_file()):
            try:
                yield path, msgspec.json.decode(path.read_bytes(), type=_Note)
            except (OSError, *UNDECODABLE):
                continue
