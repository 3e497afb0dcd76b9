"""What the person said: the first and the last request, every other message, and the statements that still hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from core.summarizers.extractive.cues import BINDING, DEFERRED, LABEL, PREFERENCE, RULE, SETS, UPDATE, identifiers, keys
from core.summarizers.extractive.items import MUST, Item, Said, without_repeats
from core.summarizers.extractive.scan import Conversation
from core.summarizers.extractive.text import cut, one_line, quoted, sentences, unmarked
from core.summarizers.extractive.updates import replaced
from core.summarizers.extractive.values import values_in

MESSAGE_CHARS = 2_400
"""Of a message between the first and the last request: its first 1,800 characters and its last 600."""
_MESSAGE_TAIL = 600
_LINE_CHARS = 200
"""A line up to this long is one statement: what qualifies a rule stands beside it."""
_STATEMENT_CHARS = 400
_STATEMENTS_IN_MESSAGE = 40
"""Of a long paste only the first rules count: more would be a document and no wishes."""
_WORTH = 2.0
"""One clear sign, or two weak ones: finds some 4 statements in a real session, most of them rightly."""


@dataclass(frozen=True, slots=True)
class Requests:
    """The sections about the person's own words, and how many statements were replaced by later ones."""

    asked: list[Item]
    rules: list[Item]
    tasks: list[Item]
    messages: list[Item]
    replaced: int


def requests(
    talk: Conversation,
    asked: Sequence[Item],
    rules: Sequence[Item],
    messages: Sequence[Item],
    first_chars: int,
    last_chars: int,
) -> Requests:
    """The person's words; `asked`, `rules` and `messages` are an earlier summary's, all older than `talk`."""
    old = [*(i for i in asked if i.tag == "first"), *messages, *(i for i in asked if i.tag != "first")]
    said = [*(Said(_unquoted(i.text), i.at, i.id) for i in old), *talk.requests]
    folded = [one_line(s.text).lower() for s in said]
    counts = Counter(folded)
    often = {s.at for s, text in zip(said, folded, strict=True) if counts[text] > 2}
    stated = [(s, unit) for s in talk.requests for unit in units(s.text)]
    texts = [i.text for i in rules] + [unit for _, unit in stated]
    gone = replaced(texts, [*(i.at for i in rules), *(s.at for s, _ in stated)])
    items = [Item(i.text, statement_score(i.text), i.at, i.id) for n, i in enumerate(rules) if n not in gone]
    items += [
        Item(
            unit,
            statement_score(unit) + talk.recency(s.at) - (2 if s.at in often else 0),
            s.at,
            s.id,
        )
        for n, (s, unit) in enumerate(stated, len(rules))
        if n not in gone
    ]
    kept = without_repeats(items)
    covered = {one_line(t) for t in texts}
    tasks = [Item(i.text, MUST - 0.5, i.at, i.id, "asked for later") for i in kept if DEFERRED.search(i.text)]
    return Requests(
        _first_and_last(said, first_chars, last_chars),
        [i for i in kept if not DEFERRED.search(i.text)],
        tasks,
        _between(said, talk, covered, often),
        len(gone),
    )


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


def _first_and_last(said: Sequence[Said], first_chars: int, last_chars: int) -> list[Item]:
    if not said:
        return []
    first, last = said[0], said[-1]
    out = [Item(quoted(cut(last.text, last_chars, tail=last_chars // 3)), MUST, last.at, last.id, "last")]
    if one_line(first.text) != one_line(last.text):
        out.insert(
            0, Item(quoted(cut(first.text, first_chars, tail=first_chars // 4)), MUST - 1, first.at, first.id, "first")
        )
    return out


def _between(said: Sequence[Said], talk: Conversation, covered: set[str], often: set[int]) -> list[Item]:
    """All messages but the first and the last; without those that are rules as a whole, which are listed as such."""
    out: list[Item] = []
    for s in said[1:-1]:
        if all(one_line(unmarked(line)) in covered for line in s.text.splitlines() if line.strip()):
            continue
        rank = 2 * talk.recency(s.at) + min(1.0, len(keys(s.text[:2_000])) / 10) - (2 if s.at in often else 0)
        out.append(Item(quoted(cut(s.text, MESSAGE_CHARS, tail=_MESSAGE_TAIL)), rank, s.at, s.id))
    return without_repeats(out)


def _unquoted(text: str) -> str:
    lines = text.strip().split("\n")
    return "\n".join(lines[1:-1]) if len(lines) > 2 and lines[0].startswith("~~~") else text
