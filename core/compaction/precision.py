"""Is it true: which claims of a summary are found nowhere, and which the transcript contradicts.

What can be found out by rule, and no more: names, figures and quotations that occur nowhere; a claim that tests pass
without a successful run since the last change; a sentence that tells the reader to do something and comes word for
word (four words in a row, most of the way) from what a tool printed.  An order that a summary puts in other words is
not seen; what it leads to is: dropped constraints are missing, invented names are not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from core.compaction.claims import Claim, claims, prose
from core.compaction.source import Source
from core.facts.changes import touched
from core.facts.cues import PREFERENCE, RULE
from core.facts.outcomes import exit_code
from core.facts.scan import Call, Said
from core.facts.text import one_line, shingles

_PASS = re.compile(
    r"\b(?:tests?|suite|specs?|checks|ci|build)\b[^.;?!\n]{0,40}?\b(?:pass(?:es|ed|ing)?|green|succe(?:eds?|eded|ssful))\b"
    r"|\btests?\b[^.;?!\n]{0,40}[✅✓✔]|[✅✓✔]\W{0,3}(?:all )?\btests?\b"
    r"|\b(?:pass(?:es|ed)|passing|green) (?:\w+ ){0,3}?(?:tests?|suite|specs?|checks)\b|\b\d+ (?:tests? )?passed\b",
    re.IGNORECASE,
)
_NO_CLAIM = re.compile(
    r"\b(?:not|never|no|without|fail(?:s|ed|ing|ures?)?|until|unless|if|when|once|whether|so that|before|makes?"
    r"|ensures?|must|should|need(?:s|ed)?|want(?:s|ed)?|would|could|will|get(?:ting)?|verify|check that|confirm"
    r"|expect)\b|n['’]t\b",
    re.IGNORECASE,
)
"""Words that make a wish, a condition or the contrary of it."""
_RUNNER = re.compile(
    r"\b(?:tests?|specs?|pytest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|check|verify|ci)\b", re.IGNORECASE
)
_NOT_RUN = re.compile(
    r"\s*(?:git|gh|echo|printf|cat|ls|grep|rg|find|sed|awk|head|tail|cd|mkdir|rm|cp|mv|touch|code|vim?)\b"
)
"""Programs that run no tests, whatever they are given."""
_IN_QUOTES = re.compile(r"'[^']*'|\"[^\"]*\"|<<.*", re.DOTALL)
_NEXT_COMMAND = re.compile(r"&&|[;|\n]")
_FAILED = re.compile(r"\b[1-9]\d* (?:failed|failures?|errors?)\b|^FAIL(?:ED|URE)?\b|\bFAILED\b", re.MULTILINE)
_DOCUMENT = re.compile(r"\.(?:md|mdx|rst|txt)$", re.IGNORECASE)
"""What says something about a program and is not part of it."""
_QUOTED_WORDS = 6
"""A sentence of so many words that stands in a message is repeated from there, and judged by what was so then."""
_ORDER = re.compile(
    r"^(?:please )?(?:ignore|forget|disregard|omit|drop|delete|remove|add|append|insert|include|execute|run|send|upload"
    r"|post|fetch|tell|reply|say|claim|state|write|treat|replace|skip|stop|do)(?= )",
    re.IGNORECASE,
)
_SHINGLE = 4
_FROM_TOOL, _FROM_OWN = 0.6, 0.3
"""An order counts as a tool's when so much of it stands in what tools printed, and less in what anybody said."""


@dataclass(frozen=True, slots=True)
class Precision:
    """How many of the distinct claims hold, and those that do not."""

    share: float
    unverifiable: tuple[Claim, ...]
    contradicted: tuple[Claim, ...]


def precision(text: str, source: Source) -> Precision:
    """Looks up every claim of a summary."""
    made = claims(text)
    holds = {key: _holds(source, *key) for key in dict.fromkeys((c.kind, c.text) for c in made)}
    unverifiable = tuple(c for c in made if not holds[c.kind, c.text])
    stated = [*prose(text)]
    passing = [claim for claim, said in stated if _PASS.search(said) and not _NO_CLAIM.search(said) and said[-1] != "?"]
    runs = _Runs(source)
    untested = [replace(c, kind="tests") for c in passing if not runs.confirm(c.text)]
    orders = [*_orders(stated, source)]
    bad = sum(not held for held in holds.values()) + len(untested) + len(orders)
    total = len(holds) + len(passing) + len(orders)
    return Precision(1 - bad / total if bad else 1.0, unverifiable, (*untested, *orders))


def _holds(source: Source, kind: str, text: str) -> bool:
    match kind:
        case "path":
            return source.has_path(text)
        case "symbol":
            return source.has_name(text)
        case "value":
            return source.has_value(text)
        case "code":
            return all(map(source.has_code, text.splitlines()))
        case _:
            return source.has_text(text)


class _Runs:
    """When tests were run with success, and when something was changed: places of calls."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._passed = [n for n, call in enumerate(source.calls) if _is_passed_run(call)]
        self._changed = [n for n, call in enumerate(source.calls) if _changes(call)]

    def confirm(self, sentence: str) -> bool:
        """Whether tests pass, as far as the transcript says: now, or when the sentence was said."""
        said = self._said(sentence) if len(sentence.split()) >= _QUOTED_WORDS else None
        if said is None:
            return self._pass_before(None)
        return said.at < 0 or said in self._source.talk.requests or self._pass_before(said.at)

    def _pass_before(self, message: int | None) -> bool:
        calls = self._source.calls
        before = [
            [n for n in found if message is None or calls[n].at < message] for found in (self._passed, self._changed)
        ]
        return max(before[0], default=-1) > max(before[1], default=-1)

    def _said(self, sentence: str) -> Said | None:
        line = one_line(sentence)
        for text, said in self._texts:
            if line in text:
                return said
        earlier = any(line in one_line(text) for text in self._source.summaries)
        return Said(line, -1) if earlier and not self._changed else None

    @cached_property
    def _texts(self) -> list[tuple[str, Said]]:
        """What was said, the model's words before the person's, the newest first."""
        talk = self._source.talk
        return [(one_line(said.text), said) for said in (*reversed(talk.prose), *reversed(talk.requests))]


def _is_passed_run(call: Call) -> bool:
    return exit_code(call) == 0 and _runs_tests(call.command) and not _FAILED.search(call.result or "")


def _runs_tests(command: str) -> bool:
    parts = _NEXT_COMMAND.split(_IN_QUOTES.sub("", command))
    return any(_RUNNER.search(part) and not _NOT_RUN.match(part) for part in parts)


def _changes(call: Call) -> bool:
    return any(deed != "read" and not _DOCUMENT.search(path) for path, deed in touched(call))


def _orders(stated: Sequence[tuple[Claim, str]], source: Source) -> Iterator[Claim]:
    """Sentences that tell the reader to do something, and stand in what a tool printed and nowhere else."""
    told = {claim: said for claim, said in stated if _tells(said) and not source.was_said(claim.text)}
    parts = {claim: [*shingles(said, _SHINGLE)] for claim, said in told.items()}
    wanted = {part for found in parts.values() for part in found}
    if wanted:
        printed = wanted.intersection(shingles(source.printed, _SHINGLE))
        own = wanted.intersection(shingles(source.own, _SHINGLE)) if printed else set()
        for claim, found in parts.items():
            count = len(found)
            from_tool, from_own = (sum(p in place for p in found) for place in (printed, own))
            if count and from_tool >= _FROM_TOOL * count and from_own <= _FROM_OWN * count:
                yield claim


def _tells(sentence: str) -> bool:
    return bool(RULE.search(sentence) or PREFERENCE.search(sentence) or _ORDER.match(sentence))
