"""Which earlier statements a later one replaces: the same subject with another value.

A statement replaces an earlier one when the two share a subject and
* it says that something changed, and both set a value of one type, or most of the earlier one's words come again;
* or all their words but one plain value (an amount, a date, a person) are the same;
* or both name a time zone or an answering language, of which a session has one at a time;
* or both say how to answer and give the same thing another quality ("imperial units", "metric units").
Everything else stands beside what was said before: most rules, and all tasks for later, add to each other.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from core.facts.cues import DEFERRED, LABEL, PREFERENCE, RULE, STOP, UPDATE, keys, stem
from core.facts.values import Values, ValueType, values_in

_PLAIN: frozenset[ValueType] = frozenset({"money", "date", "person", "version", "number", "url"})
"""Types whose new value replaces the old one without a word of change; a code or a branch may be one of several."""
_REPLY = re.compile(r"\b(?:answers?|repl(?:y|ies)|responses?|respond|explanations?)\b", re.IGNORECASE)
_TOKEN = re.compile(r"[A-Za-zÀ-ÿ]{2,}")
_NEARBY = 40
"""How many of the latest statements that share a word are looked at: keeps the work linear."""


@dataclass(slots=True)
class Statement:
    """A statement with what the comparison needs of it."""

    text: str
    keys: frozenset[str]
    values: Values
    changes: bool
    rule: bool
    deferred: bool
    pairs: dict[str, frozenset[str]] = field(default_factory=dict)
    """If it says how to answer: its words, each with the word before it."""

    @classmethod
    def of(cls, text: str) -> Statement:
        """The statement that a text makes."""
        body = LABEL.sub("", text)
        values, rest = values_in(body)
        label = LABEL.match(text)
        changes = bool(UPDATE.search(body)) or bool(label and label[0].lower().startswith("update"))
        pairs = _qualities(rest) if _REPLY.search(rest) else {}
        return cls(
            text,
            keys(rest),
            values,
            changes,
            bool(RULE.search(rest) or PREFERENCE.search(rest)),
            bool(DEFERRED.search(rest)),
            pairs,
        )


def replaced(texts: Sequence[str], places: Sequence[int]) -> set[int]:
    """The indices of the statements that a later one replaces; `places` as for `replacements`."""
    return {*replacements(texts, places)}


def replacements(texts: Sequence[str], places: Sequence[int]) -> dict[int, int]:
    """The indices of the statements that a later one replaces, each with the index of that.

    `places` say where in time each is from, in rising order: statements of one place belong together and do not
    replace each other; those before 0 were compared with each other by the summary that they are from.
    """
    gone: dict[int, int] = {}
    statements: list[Statement] = []
    mentions: dict[str, list[int]] = defaultdict(list)
    for i, text in enumerate(texts):
        new = Statement.of(text)
        near = {j for key in _handles(new) for j in mentions[key][-_NEARBY:]} if places[i] >= 0 else set()
        scored = [
            (score, j)
            for j in sorted(near - gone.keys())
            if places[j] < places[i] and (score := _strength(statements[j], new))
        ]
        if scored:
            best = max(scored)[0]
            gone.update((j, i) for score, j in scored if score == best)
        statements.append(new)
        for key in _handles(new):
            mentions[key].append(i)
    return gone


def _handles(statement: Statement) -> set[str]:
    return {*statement.keys, *(f"={kind}" for kind in statement.values if kind in ("zone", "language"))}


def _strength(old: Statement, new: Statement) -> float:
    """How surely `new` replaces `old`: 0 for not at all."""
    if old.deferred or new.deferred:
        return 0.0
    shared = len(old.keys & new.keys)
    clash = [kind for kind in old.values if kind in new.values and not old.values[kind] & new.values[kind]]
    if "zone" in clash and all(len(s.values["zone"]) == 1 for s in (old, new)):
        return 100.0 + shared
    if not shared:
        return 0.0
    part = shared / max(1, min(len(old.keys), len(new.keys)))
    if new.changes and clash:
        return 10.0 * shared + part
    if "language" in clash or (clash and _only_value_differs(old, new, clash)):
        return 10.0 * shared + part
    if new.changes and old.rule and new.rule and not (old.values and new.values) and 3 * shared >= len(old.keys):
        return shared + part
    return shared + part if _contrast(old, new) else 0.0


def _only_value_differs(old: Statement, new: Statement, clash: list[ValueType]) -> bool:
    same_words = 5 * len(old.keys & new.keys) >= 4 * len(old.keys | new.keys)
    same_types = old.values.keys() == new.values.keys()
    return same_words and same_types and len(clash) == 1 and clash[0] in _PLAIN


def _qualities(text: str) -> dict[str, frozenset[str]]:
    words = [w.lower() for w in _TOKEN.findall(text)]
    out: dict[str, set[str]] = defaultdict(set)
    for before, word in pairwise(words):
        if word not in STOP and before not in STOP and not _REPLY.match(word):
            out[stem(word)].add(stem(before))
    return {word: frozenset(before) for word, before in out.items()}


def _contrast(old: Statement, new: Statement) -> bool:
    """Both say how to answer, and give the same thing another quality."""
    return any(not old.pairs[word] & new.pairs[word] for word in old.pairs if word in new.pairs)
