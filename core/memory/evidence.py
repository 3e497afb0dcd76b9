"""What a transcript says for or against a change of the notes: who said what, what worked, what a person confirmed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.facts.outcomes import exit_code
from core.facts.scan import Call, said_in
from core.facts.text import one_line, typed
from core.model import Message, block_text, call_id, mapping, tool_results, tool_uses

_CUT = re.compile(r"…(?:\[\d+ chars left out\]…)?")
"""Where a quotation leaves something out."""
_CONFIRMS = re.compile(
    r"\b(?:yes|yep|thanks|thank you|works?|working|perfect|great|good|nice|done|fixed|merged|solved|correct|lgtm"
    r"|ship it|passes|passed|ok(?:ay)?|danke|super|passt|erledigt|merci|parfait|gracias|perfecto)\b",
    re.IGNORECASE,
)
_DENIES = re.compile(
    r"\b(?:not?|n't|never|still|but|yet|wrong|fail\w*|broken|error|instead|revert|undo|stop|nicht|kein\w*|noch|pas|aún"
    r"|todavía)\b|n't\b|\?",
    re.IGNORECASE,
)
_LISTS = frozenset({"todos", "taskId", "plan"})
"""The inputs of calls that keep a list of tasks."""
_ANSWER_CHARS = 300
"""A confirmation comes first, or it is none."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The messages of a transcript as far as they can stand for a change; all by the ids of their rows."""

    places: Mapping[str, int] = field(default_factory=dict)
    said: Mapping[str, str] = field(default_factory=dict)
    """What persons said, white space as one blank; by the first row of each message."""
    retold: Mapping[str, str] = field(default_factory=dict)
    """The same of earlier summaries, in which words of a person are second-hand."""
    calls: tuple[Call, ...] = ()
    """All calls of tools, each with the place of its message."""
    successes: frozenset[str] = frozenset()
    """Calls that worked, and the messages with their results."""
    deeds: frozenset[str] = frozenset()
    """Of these, those that ran a command, changed a file or kept a list of tasks: reading something does no task."""
    confirmations: frozenset[str] = frozenset()

    def newer(self, evidence: str, sources: Sequence[str]) -> bool:
        """Whether a message came after all of these; what is not in the transcript any more is older than all in it."""
        place = self.places.get(evidence, -1)
        return all(self.places.get(source, -1) < place for source in sources)

    def quoted_from(self, text: str) -> str:
        """The message that a text quotes a person from, word for word but for what it leaves out; "" if there is none.

        An earlier summary does where the person's own message is gone.
        """
        parts = [part for piece in _CUT.split(text) if (part := one_line(piece))]
        texts = (*self.said.items(), *self.retold.items())
        found = (uuid for uuid, said in texts if all(part in said for part in parts))
        return next(found, "") if parts else ""


def evidence_of(messages: Sequence[Message]) -> Evidence:
    """The evidence that some messages hold."""
    places: dict[str, int] = {}
    said: dict[str, str] = {}
    retold: dict[str, str] = {}
    successes: set[str] = set()
    deeds: set[str] = set()
    confirmations: set[str] = set()
    made: list[Call] = []
    calls: dict[str, tuple[Message, Call]] = {}
    for at, message in enumerate(messages):
        places.update(dict.fromkeys(message.uuids, at))
        for block in tool_uses(message):
            call = Call(at, str(block.get("name")), mapping(block.get("input")))
            calls[call_id(block)] = message, call
            made.append(call)
        for block in tool_results(message):
            caller, call = calls.get(call_id(block), (message, Call(at, "", {})))
            call.result, call.failed = block_text(block), block.get("is_error") is True
            if exit_code(call) == 0:
                successes.update((*caller.uuids, *message.uuids))
                if call.command or call.changes or _LISTS & call.input.keys():
                    deeds.update((*caller.uuids, *message.uuids))
        text = one_line(typed(said_in(message)))
        if message.kind == "summary":
            retold[message.uuid] = text
        elif message.kind in ("prompt", "results") and text:
            said[message.uuid] = text
            answer = text[:_ANSWER_CHARS]
            if _CONFIRMS.search(answer) and not _DENIES.search(answer):
                confirmations.add(message.uuid)
    return Evidence(places, said, retold, tuple(made), *map(frozenset, (successes, deeds, confirmations)))
