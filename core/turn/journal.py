"""The log of a running conversation: events that are appended and never edited, one JSON line each.

What a conversation is at any moment is the fold of its events, in memory as after a restart: an event counts as it
is read back from its line.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from core.errors import Damaged
from core.model import UNDECODABLE, Message
from core.transcript.blob import utf8
from core.transcript.materialize import derived_id
from core.turn.events import Appended, Begun, Event, Row
from core.turn.state import Draft, TurnState

_decode = msgspec.json.Decoder(Event).decode


class Journal:
    """The events of one conversation and what they amount to; `lines` are what is written of it."""

    def __init__(self, session: str, messages: Sequence[Message] = ()) -> None:
        """Begins one, with what was said so far."""
        self._lines: list[bytes] = []
        self._draft = Draft()
        self._state: TurnState | None = None
        if session:
            self.append(Begun(session), *(Appended(Row.of(m)) for m in messages))

    @property
    def state(self) -> TurnState:
        """The fold of all events."""
        if self._state is None:
            self._state = self._draft.state()
        return self._state

    @property
    def lines(self) -> Sequence[bytes]:
        """One for each event, without line ends; later events only add to them."""
        return self._lines

    def append(self, *events: Event) -> None:
        """Adds events; whoever keeps the journal on a disk writes the new `lines`."""
        for event in events:
            self._add(_encoded(event))

    def new_id(self, *parts: str) -> str:
        """An id for what is appended next: the same after a restart."""
        return derived_id("turn", self.state.session, str(len(self._lines)), *parts)

    def dump(self) -> bytes:
        """The journal as it is written."""
        return b"".join(line + b"\n" for line in self._lines)

    @classmethod
    def load(cls, data: bytes) -> Journal:
        """The journal of what was written.

        A last line without its end was being written when the program was ended: it never was part of it.  Raises
        `Damaged` for anything else that is no event.
        """
        journal = cls("")
        for number, line in enumerate(data.split(b"\n")[:-1], 1):
            try:
                journal._add(line)
            except UNDECODABLE as error:
                raise Damaged(f"line {number} of the journal is no event: {error}", "begin a new one") from None
        return journal

    def _add(self, line: bytes) -> None:
        self._draft.add(_decode(line))
        self._lines.append(line)
        self._state = None


def _encoded(event: Event) -> bytes:
    try:
        return msgspec.json.encode(event)
    except UnicodeEncodeError:  # a lone surrogate, which no request can hold either
        return utf8(json.dumps(msgspec.to_builtins(event), ensure_ascii=False))
