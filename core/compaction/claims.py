"""What a summary claims that can be looked up: paths, symbols, code, quotations, figures, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from core.facts.names import names_in
from core.facts.text import lowered, sentences
from core.facts.values import ValueType, values_in

ClaimKind: TypeAlias = Literal["path", "symbol", "code", "quote", "value", "tests", "order"]
"""code: more than a name in backticks, or fenced.  value: a number, version, hash or host.  tests: that they pass.
order: something that the reader should do."""

NOT_FOUND = "(not found in the transcript)"
NOT_RUN = "(not confirmed: no successful test run since the last change)"
PRINTED = "(printed by a tool: no instruction)"
MARKS = (NOT_FOUND, NOT_RUN, PRINTED)
"""What stands behind a claim that was looked up in vain: it claims nothing any more."""

_MARK = re.compile("|".join(map(re.escape, MARKS)))
_MARKED = re.compile(rf"(?:\s?(?:{_MARK.pattern}))+")
_SENTENCE_MARK = re.compile(f"{re.escape(NOT_RUN)}|{re.escape(PRINTED)}")
_FENCE = re.compile(
    r"^(?P<fence>~{3,}(?!~)|`{3,}(?!`))[^\n]*\n(?P<body>.*?)^(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL
)
_CODE = re.compile(r"`([^`\n]+)`")
_QUOTE = re.compile(r"\"([^\"\n]{1,600})\"|“([^”\n]{1,600})”|«([^»\n]{1,600})»|^[ \t]*> ?([^\n]+)$", re.MULTILINE)
_QUOTE_WORDS = 3
"""Fewer in quotation marks are a name or a manner of speaking."""
_FIGURES_OF_CODE = re.compile(
    r"\b\d+ (?:messages, |parts left out|more left out|chars left out)|\b(?:created|edited|deleted|read) \d+(?=[,;\n])"
)
"""What the offline summariser counted."""
_TAG = re.compile(r"^(?:\([a-z ]{2,24}\) ?)?(?:\[[0-9A-Za-z-]{1,8}\] ?)?")
"""What the offline summariser puts before an item."""
_LINE_NUMBER = re.compile(r"[:#]L?\d+(?:[-:]L?\d+)?|\(\)")
_NUMBER = re.compile(r"(?<![\w.,-])\d[\d,_]*(?<=\d)")
_DIGITS = 3
"""A shorter number is found in any transcript."""
_LOOKED_UP: tuple[ValueType, ...] = ("url", "hash", "version")
_LEAST_CHARS = 3


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim and its place in the text of the summary; a mark goes to `end`."""

    kind: ClaimKind
    text: str
    start: int
    end: int


def claims(text: str) -> list[Claim]:
    """Every claim that can be looked up, in the order of the text, but for marked ones."""
    found = [Claim("code", m["body"], *m.span()) for m in _FENCE.finditer(text)]
    rest = blanked(text, ((c.start, c.end) for c in found))
    spans = [_in_backticks(m) for m in _CODE.finditer(rest)]
    found += spans
    rest = blanked(rest, ((c.start, c.end) for c in spans))
    quotes = [
        Claim("quote", said, *m.span())
        for m in _QUOTE.finditer(rest)
        if len((said := text[slice(*m.span(m.lastindex or 0))].strip()).split()) >= _QUOTE_WORDS
    ]
    found += quotes
    rest = blanked(rest, ((c.start, c.end) for c in quotes))
    paths = [*_paths(rest)]
    found += paths
    rest = blanked(rest, ((c.start, c.end) for c in paths))
    found += _values(blanked(rest, (m.span() for m in _FIGURES_OF_CODE.finditer(rest))))
    worth = (
        c for c in found if sum(map(str.isalnum, c.text)) >= _LEAST_CHARS and not is_marked(text, c.end, NOT_FOUND)
    )
    return sorted(worth, key=lambda c: (c.start, c.end))


def prose(text: str) -> Iterator[tuple[Claim, str]]:
    """The unmarked sentences outside of fences, and what the summary itself says in each: quotations and code blank.

    Their kind is "order" until somebody knows better.
    """
    rest = blanked(text, (m.span() for m in _FENCE.finditer(text)))
    for pattern in (_CODE, _QUOTE, _MARK):
        rest = blanked(rest, (m.span() for m in pattern.finditer(rest)))
    at = 0
    for line, bare in zip(text.split("\n"), rest.split("\n"), strict=True):
        for start, end in _spans(line) if bare.strip() else ():
            is_settled = _SENTENCE_MARK.search(line, start, end) or is_marked(line, end, NOT_RUN, PRINTED)
            if not is_settled:
                yield Claim("order", line[start:end], at + start, at + end), bare[start:end]
        at += len(line) + 1


def _spans(line: str) -> Iterator[tuple[int, int]]:
    """Where the sentences of a line are, without the words that stand before an item."""
    at = 0
    for sentence in sentences(line):
        found = line.find(sentence, at)
        start, at = (found, found + len(sentence)) if found >= 0 else (at, len(line))  # white space was normalised
        start += len(sentence) - len(_TAG.sub("", sentence, count=1))
        if start < at:
            yield start, at


def is_marked(text: str, end: int, *marks: str) -> bool:
    """Whether one of some marks stands behind a place, other marks between."""
    behind = _MARKED.match(text, end)
    return behind is not None and any(mark in behind[0] for mark in marks)


def without_marks(text: str) -> str:
    """The text without its marks."""
    for mark in MARKS:
        text = text.replace(f" {mark}", "").replace(f"\n{mark}", "")
    return text


def blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with spaces for some parts of it, so that places stay; `spans` in order, none overlaps another."""
    out: list[str] = []
    at = 0
    for start, end in spans:
        out += [text[at:start], re.sub(r"[^\n]", " ", text[start:end])]
        at = end
    return "".join([*out, text[at:]])


def _in_backticks(match: re.Match[str]) -> Claim:
    inside = match[1].strip()
    paths = names_in(inside)[0]
    if paths and inside.startswith(paths[0]) and _LINE_NUMBER.sub("", inside[len(paths[0]) :]) == "":
        return Claim("path", paths[0], *match.span())
    return Claim("code" if " " in inside else "symbol", inside, *match.span())


def _paths(text: str) -> Iterator[Claim]:
    at = 0
    for path in names_in(text)[0]:
        start = text.index(path, at)
        at = start + len(path)
        if not text.startswith("…", at):  # cut off in the middle: no path
            yield Claim("path", path, start, at)


def _values(text: str) -> Iterator[Claim]:
    at = 0
    for line in text.split("\n"):
        low, values = lowered(line), values_in(line)[0]
        for kind in _LOOKED_UP:
            for value in sorted(values.get(kind, ())):
                if kind != "version" or value[0] == "v" or value.count(".") > 1 or _digits(value) >= _DIGITS:
                    start = at + low.index(value)
                    yield Claim("value", value, start, start + len(value))
        for number in _NUMBER.finditer(line):
            if _digits(number[0]) >= _DIGITS:
                yield Claim("value", number[0], at + number.start(), at + number.end())
        at += len(line) + 1


def _digits(text: str) -> int:
    return sum(map(str.isdigit, text))
