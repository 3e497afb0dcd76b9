"""Is it complete: what the reader of a summary must know, and which of it neither the summary nor the tail says."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

from core.compaction.needs import HEAD_CHARS, TAIL_CHARS, Need, needs
from core.compaction.source import Source, texts_of
from core.facts.cues import keys
from core.facts.text import lowered, shingles, squeezed
from core.facts.values import ValueType, values_in

_CONSTRAINTS_SHARE = 0.9
_OVERLAP = 0.6
_FUZZY = 0.9
_SHINGLE = 3
_EXACT: tuple[ValueType, ...] = ("url", "money", "date", "hash", "version", "number")
"""The values of a constraint that must stand beside its words."""
_NEGATIVE = re.compile(
    r"\b(?:not|never|no|none|without|avoid|forbid(?:s|den)?|nothing|neither|stop|skip|nie|nicht|keine?|jamais|nunca|mai)\b"
    r"|n['’]t\b|不|禁|нельзя|никогда",
    re.IGNORECASE,
)
_MODAL = keys("never always must should only please ensure avoid keep don't prefer instead cannot make sure")
"""They make a rule, and do not tell one from another."""
_DONE = re.compile(r"\[[xX]\]|[✅✓✔]|\((?:completed|done|finished|closed)\)|~~")
_COMMAND_CHARS, _ERROR_CHARS = 60, 80
"""So much of the beginning of a command and of its error line tells it from others."""


class Recall:
    """What must be known, and whether texts say it that stand in front of the messages which stay."""

    def __init__(self, source: Source) -> None:
        self.needs = needs(source)
        self._files = [need.text for need in self.needs if need.kind == "file"]
        kept = _Place([t for m in source.kept for end in (False, True) for t in texts_of(m, end)])
        self._wanted = [need for need in self.needs if not kept.has(need, self._files)]

    def missing(self, text: str) -> tuple[Need, ...]:
        """What neither a text says nor a message that stays."""
        place = _Place([text])
        return tuple(need for need in self._wanted if not place.has(need, self._files))

    def share(self, missing: Sequence[Need]) -> float:
        """The part of what must be known that is there; nine of ten constraints are as good as all."""
        lost, all_ = (Counter(need.kind for need in found) for found in (missing, self.needs))
        if all_["constraint"] - lost["constraint"] >= _CONSTRAINTS_SHARE * all_["constraint"]:
            del lost["constraint"]
        return 1 - lost.total() / len(self.needs) if self.needs else 1.0


class _Place:
    """A text in which needs are looked for, made ready for that."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._text = "\n".join(texts)
        self._squeezed = squeezed(self._text)
        self._shingles = frozenset(shingles(self._text, _SHINGLE))
        lines = [line for line in self._text.splitlines() if line.strip()]
        # A statement may stand in a list item, or run over two lines.
        self._lines = [*lines, *(f"{a} {b}" for a, b in pairwise(lines))]
        self._lines_of: dict[str, list[int]] = defaultdict(list)
        for n, line in enumerate(self._lines):
            for key in keys(line):
                self._lines_of[key].append(n)

    def has(self, need: Need, files: Sequence[str]) -> bool:
        """Whether the text says what is needed."""
        match need.kind:
            case "last request":
                return self._says(need.text)
            case "constraint":
                return self._states(need.text)
            case "todo":
                return self._lists(need.text)
            case "failure":
                shown = (need.text[:_COMMAND_CHARS], need.detail[:_ERROR_CHARS])
                return all(squeezed(part.rstrip("…")) in self._squeezed for part in shown)
            case "file" | "plan":
                return self._names(need.text, files)
            case _:
                return need.text in self._text

    def _says(self, request: str) -> bool:
        parts = [request]
        if len(request) > HEAD_CHARS + TAIL_CHARS:
            parts = [request[:HEAD_CHARS].rpartition(" ")[0], request[-TAIL_CHARS:].partition(" ")[2]]
        wanted = [shingle for part in parts for shingle in shingles(part, _SHINGLE)]
        if not wanted:
            return squeezed(request) in self._squeezed
        return sum(shingle in self._shingles for shingle in wanted) >= _FUZZY * len(wanted)

    def _states(self, constraint: str) -> bool:
        if squeezed(constraint) in self._squeezed:
            return True
        values = values_in(constraint)[0]
        exact = [value for kind in _EXACT for value in values.get(kind, ())]
        negative = bool(_NEGATIVE.search(constraint))
        return any(
            all(_holds(lowered(line), value) for value in exact) and (not negative or _NEGATIVE.search(line))
            for line in self._alike(constraint)
        )

    def _lists(self, todo: str) -> bool:
        return any(not _DONE.search(line) for line in self._alike(todo)) or (
            not keys(todo) and squeezed(todo) in self._squeezed
        )

    def _alike(self, text: str) -> list[str]:
        """The lines that hold most of the words of a text."""
        words = keys(text) - _MODAL or keys(text)
        counts = Counter(n for key in words for n in self._lines_of[key])
        return [self._lines[n] for n, count in counts.items() if count >= _OVERLAP * len(words)]

    def _names(self, path: str, files: Sequence[str]) -> bool:
        parts = path.replace("\\", "/").split("/")
        text = self._text.replace("\\", "/")
        for n in range(1, len(parts) + 1):
            end = "/".join(parts[-n:])
            if end and sum(f.replace("\\", "/").endswith(end) for f in files) <= 1:
                return re.search(rf"(?<![\w.-]){re.escape(end)}(?![\w/])", text) is not None
        return path in self._text


def _holds(line: str, value: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", line) is not None
