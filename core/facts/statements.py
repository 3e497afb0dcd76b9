"""Which sentences of a person go on to hold: rules, wishes, values, changes, things for later."""

from __future__ import annotations

from collections.abc import Sequence

from core.facts.cues import BINDING, DEFERRED, LABEL, PREFERENCE, RULE, SETS, UPDATE, identifiers, keys
from core.facts.scan import Said
from core.facts.text import sentences, unmarked
from core.facts.values import values_in

_LINE_CHARS = 200
"""A line up to this long is one statement: what qualifies a rule stands beside it."""
_STATEMENT_CHARS = 400
_STATEMENTS_IN_MESSAGE = 40
"""Of a long paste only the first rules count: more would be a document and no wishes."""
_WORTH = 2.0
"""One clear sign, or two weak ones: finds some 4 statements in a real session, most of them rightly."""


def statements(requests: Sequence[Said]) -> list[Said]:
    """The statements of some messages, each with the place and the id of its message."""
    return [Said(unit, said.at, said.id) for said in requests for unit in units(said.text)]


def units(text: str) -> list[str]:
    """The statements in a message that are worth keeping by themselves: its rules, wishes, values, changes."""
    out: list[str] = []
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and line.strip():
            parts = [unmarked(line)] if len(line) <= _LINE_CHARS else sentences(line[: 20 * _STATEMENT_CHARS])
            out += [part for part in parts if len(part) <= _STATEMENT_CHARS and statement_score(part) >= _WORTH]
        if len(out) >= _STATEMENTS_IN_MESSAGE:
            break
    return out[:_STATEMENTS_IN_MESSAGE]


def statement_score(text: str) -> float:
    """How much a sentence of a person looks like something that goes on to hold; from 2 on it counts as such."""
    values, rest = values_in(text)
    label = LABEL.match(text)
    exact = sum(len(v) for kind, v in values.items() if kind not in ("number", "person"))
    signs = (
        (3.0, label),
        (2.0, RULE.search(rest) or (label and BINDING.search(label[0]))),
        (2.0, PREFERENCE.search(rest)),
        (2.0, DEFERRED.search(rest)),
        (1.5, UPDATE.search(rest)),
        (1.0, exact > 0),
        (1.0, exact > 1),
        (1.0, values and SETS.search(rest)),
        (1.0, "zone" in values or "language" in values),  # a session has one of each
        (0.5, "person" in values),
        (0.5, "number" in values),
        (0.5, identifiers(text)),
        (-2.0, text.endswith("?")),
        (-1.0, not keys(rest)),
    )
    return sum(worth for worth, sign in signs if sign)
