"""What the model found, decided, tried and settled: the sentences of its prose that say so; and the concepts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from core.facts.cues import finding_score, identifiers, keys
from core.facts.scan import Talk
from core.facts.text import capped, cut, one_line, sentences
from core.summarizers.extractive.items import Item, without_repeats

_CHARS = 300
_WORTH = 2.0
_WORDS = 3
"""A sentence with fewer content words and codes ("Confirmed.") says nothing without its neighbours."""
_TERM = re.compile(r"`([^`\n]{2,40})`|(?<=[a-z,;(] )([A-Z][A-Za-z0-9]{2,24}(?:[ -][A-Z][A-Za-z0-9]{2,24}){0,2})\b")
"""Names in backticks, and capitalised words inside a sentence."""
_CONCEPTS = 10
_CONCEPTS_CHARS = 150


def findings(talk: Talk, earlier: Sequence[Item], focus: frozenset[str]) -> list[Item]:
    """Sentences worth keeping, in order of time; `focus` holds the stems that the caller's instructions ask about."""
    out = [Item(i.text, finding_score(i.text) + _focus(i.text, focus), i.at, i.id, i.tag) for i in earlier]
    for said in talk.prose:
        for sentence in _prose(said.text):
            score = finding_score(sentence) + _focus(sentence, focus)
            if score >= _WORTH and len(keys(sentence)) + len(identifiers(sentence)) >= _WORDS:
                out.append(Item(cut(sentence, _CHARS), score + 1.5 * talk.recency(said.at), said.at))
    return without_repeats(out)


def _prose(text: str) -> list[str]:
    out: list[str] = []
    fenced = False
    for line in capped(text).splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced:
            out += [one_line(s[: 4 * _CHARS]) for s in sentences(line)]
    return out


def _focus(sentence: str, focus: frozenset[str]) -> float:
    return min(3.0, 1.5 * len(keys(sentence) & focus)) if focus else 0.0


def concepts(talk: Talk, earlier: Sequence[Item]) -> list[Item]:
    """The terms that the prose uses most: one bullet."""
    count: Counter[str] = Counter()
    for n, term in enumerate(t for item in earlier for t in item.text.split(", ")):
        count[term] += max(2, _CONCEPTS - n)
    for said in (*talk.requests, *talk.prose):
        seen = {a or b for a, b in _TERM.findall(capped(said.text))}
        count.update(t for t in seen if "/" not in t and "," not in t)
    terms = [t for t, n in sorted(count.items(), key=lambda x: (-x[1], x[0])) if n > 1][:_CONCEPTS]
    while len(", ".join(terms)) > _CONCEPTS_CHARS:
        terms.pop()
    return [Item(", ".join(terms))] if terms else []
