"""A model says how the notes change: it gets them, and what is new as quoted data, and answers in operations.

All that can be found by rule is found by rule here too; code looks at each operation before it is carried out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from core.api.endpoint import Endpoint
from core.api.metered import billed_usage
from core.errors import NothingNoted
from core.memory.brief import brief
from core.memory.cadence import PAID
from core.memory.extract import Extracted
from core.memory.notes import Notes, SectionKey
from core.memory.offline import MECHANICAL, by_rule
from core.memory.operations import Add, Obsolete, Operation, Replace
from core.memory.part import Part
from core.memory.prompt import SECTIONS_OF_MODEL, SYSTEM, question
from core.model import JSON, UNDECODABLE
from core.summarizers.media import in_words
from core.summarizers.quotation import labelled

ANSWER_TOKENS = 4_096
"""An update has some 800 tokens; a first one of a long part more."""
PART_TOKENS = 60_000
"""Of a conversation in one call: with results cut it is some 20,000 tokens, which the smallest model reads well."""
_JSON = re.compile(r"[\[{].*[\]}]", re.DOTALL)
_SHOWN_CHARS = 200


class ByModel:
    """A model, for what takes understanding; all that can be found by rule is found by rule here too."""

    cadence = PAID
    part_tokens = PART_TOKENS

    def __init__(self, endpoint: Endpoint, model: str, name: str = "anthropic") -> None:
        self.name = name
        self._endpoint = endpoint
        self._model = model

    def extract(self, part: Part) -> Extracted:
        """The operations of code, then those of the model; what is no operation, or not the model's, is refused."""
        new = in_words(part.new)
        labels = {f"m{n}": message.uuid for n, message in enumerate(new, 1)}
        known = brief(part.notes, part.budget_tokens, "the file")
        reply = self._endpoint.send(
            {
                "model": self._model,
                "max_tokens": ANSWER_TOKENS,
                "system": SYSTEM,
                "messages": [{"role": "user", "content": question(known, labelled(new, [*labels]))}],
            }
        )
        found, refused = read_operations(reply.text, labels, part.notes)
        operations = (*by_rule(part, MECHANICAL), *found)
        return Extracted(operations, refused, billed_usage(reply), 1)


def read_operations(
    text: str, labels: Mapping[str, str], notes: Notes
) -> tuple[tuple[Operation, ...], tuple[str, ...]]:
    """The operations of an answer, with the ids of messages in the place of `labels`, and why others are refused.

    Raises `NothingNoted` for a text that is no list of operations.
    """
    found, refused = [], []
    for raw in _listed(text):
        try:
            operation = _resolved(msgspec.convert(raw, Operation), labels)
            if _section(operation, notes) not in SECTIONS_OF_MODEL:
                raise ValueError("that section is written by code")
        except (msgspec.ValidationError, ValueError) as error:
            refused.append(f"{msgspec.json.encode(raw).decode()[:_SHOWN_CHARS]}: {error}")
        else:
            found.append(operation)
    return tuple(found), tuple(refused)


def _listed(text: str) -> list[JSON]:
    """The list in an answer, bare or under a key, whatever stands around it."""
    inside = _JSON.search(text)
    try:
        answer: JSON = msgspec.json.decode(inside[0] if inside else b"")
    except UNDECODABLE:
        raise NothingNoted("the model's answer is no list of operations", "try again") from None
    if isinstance(answer, dict):
        answer = answer.get("operations")
    if not isinstance(answer, list):
        raise NothingNoted("the model's answer is no list of operations", "try again")
    return answer


def _resolved(operation: Operation, labels: Mapping[str, str]) -> Operation:
    match operation:
        case Add() | Replace():
            return msgspec.structs.replace(operation, sources=tuple(_uuid(s, labels) for s in operation.sources))
        case Obsolete(evidence=""):
            return operation
        case _:
            return msgspec.structs.replace(operation, evidence=_uuid(operation.evidence, labels))


def _uuid(label: str, labels: Mapping[str, str]) -> str:
    if label not in labels:
        raise ValueError(f"there is no message {label}")
    return labels[label]


def _section(operation: Operation, notes: Notes) -> SectionKey | None:
    if isinstance(operation, Add):
        return operation.section
    found = notes.find(operation.id)
    return found[0] if found else None
