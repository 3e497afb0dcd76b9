"""What the person said: the first and the last request, every other message, and the statements that still hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from core.facts.cues import DEFERRED, keys
from core.facts.scan import Said, Talk
from core.facts.statements import statement_score, statements
from core.facts.text import cut, one_line, quoted, unmarked, unquoted
from core.facts.updates import replaced
from core.summarizers.extractive.items import MUST, Item, without_repeats

MESSAGE_CHARS = 2_400
"""Of a message between the first and the last request: its first 1,800 characters and its last 600."""
_MESSAGE_TAIL = 600


@dataclass(frozen=True, slots=True)
class Requests:
    """The sections about the person's own words."""

    asked: list[Item]
    rules: list[Item]
    tasks: list[Item]
    messages: list[Item]


def requests(
    talk: Talk,
    asked: Sequence[Item],
    rules: Sequence[Item],
    messages: Sequence[Item],
    first_chars: int,
    last_chars: int,
) -> Requests:
    """The person's words; `asked`, `rules` and `messages` are an earlier summary's, all older than `talk`."""
    old = [*(i for i in asked if i.tag == "first"), *messages, *(i for i in asked if i.tag != "first")]
    said = [*(Said(unquoted(i.text), i.at, i.id) for i in old), *talk.requests]
    folded = [one_line(s.text).lower() for s in said]
    counts = Counter(folded)
    often = {s.at for s, text in zip(said, folded, strict=True) if counts[text] > 2}
    stated = statements(talk.requests)
    texts = [i.text for i in rules] + [s.text for s in stated]
    gone = replaced(texts, [i.at for i in rules] + [s.at for s in stated])
    items = [Item(i.text, statement_score(i.text), i.at, i.id) for n, i in enumerate(rules) if n not in gone]
    items += [
        Item(
            s.text,
            statement_score(s.text) + talk.recency(s.at) - (2 if s.at in often else 0),
            s.at,
            s.id,
        )
        for n, s in enumerate(stated, len(rules))
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
    )


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


def _between(said: Sequence[Said], talk: Talk, covered: set[str], often: set[int]) -> list[Item]:
    """All messages but the first and the last; without those that are rules as a whole, which are listed as such."""
    out: list[Item] = []
    for s in said[1:-1]:
        if all(one_line(unmarked(line)) in covered for line in s.text.splitlines() if line.strip()):
            continue
        rank = 2 * talk.recency(s.at) + min(1.0, len(keys(s.text[:2_000])) / 10) - (2 if s.at in often else 0)
        out.append(Item(quoted(cut(s.text, MESSAGE_CHARS, tail=_MESSAGE_TAIL)), rank, s.at, s.id))
    return without_repeats(out)
