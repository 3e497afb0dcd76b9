"""The names index: which paths and symbols the session used, the ones it will most likely use again first.

Measured on what 11 real sessions used in the 160 blocks after a compaction: names in calls and prose come again more
often than names that only tool results hold, recent ones more often than old ones.  With 2,500 characters of paths and
3,000 of symbols an index holds .91 of the paths and .77 of the symbols that came again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from core.model import JSON

_PART = r"[\w.@~+-]{1,80}"
_SEGMENT = r"[\w.@~+-]{0,80}"
_PATH = re.compile(
    rf"(?<![\w.@~/\\+-])(?:https?://[^\s\"'`<>()\[\]{{}}\\]{{3,160}}|(?:[A-Za-z]:\\|\\\\)(?:{_PART}\\){{0,16}}[\w.@-]{{1,80}}\.\w{{1,5}}|(?:{_SEGMENT}/){{1,24}}[\w.@-]{{1,80}}\.\w{{1,5}}"
    r"|[\w-]{1,60}(?:\.[\w-]{1,20}){0,2}\.(?:py|go|rs|tsx?|jsx?|mjs|md|mdx|json|sh|toml|ya?ml|c|h|cc|cpp|hpp|cs|java|rb|kt|swift|php|sql|css|html|vue|lock|txt|cfg|ini|ipynb))\b"
)  # fmt: skip
_SYMBOL = re.compile(
    r"\b(?!_+\b|__\w{1,40}__\b)"
    r"(?:[a-z]{1,40}[A-Z]\w{3,60}|[A-Z][a-z]{1,40}[A-Z]\w{1,60}|[A-Z]{2,20}_[A-Z_]{3,40}|\w{1,40}_\w{3,60})\b"
)
"""Not a line of underscores, nor what every file of a language has (`__init__`)."""
_OF_DIFFS = ("diff --git a/", "--- a/", "+++ b/")
"""Begin the lines of a diff that put a letter in front of each path."""
_ONE_OF_MANY = re.compile(r"://|_(?=(?:[A-Za-z]*\d){3})[0-9A-Za-z]+\Z")
"""URLs, and numbered ids (`ch_90210`)."""


def names_in(text: str) -> tuple[list[str], list[str]]:
    """The paths (URLs and plain file names too) and the symbols in a text, in order, with repeats."""
    paths = _PATH.findall(text)
    if any(begin in text for begin in _OF_DIFFS):
        paths = [path[2:] if path.startswith(("a/", "b/")) else path for path in paths]
    return paths, _SYMBOL.findall(text)


def strings_in(value: JSON) -> Iterator[str]:
    """Every string in a tool's input, keys too: the names of its arguments are names that come again."""
    stack: list[JSON] = [value]
    while stack:
        match stack.pop():
            case str() as text:
                yield text
            case list() as items:
                stack.extend(reversed(items))
            case dict() as fields:
                yield from fields
                stack.extend(reversed(fields.values()))


@dataclass(slots=True)
class _Use:
    path: bool
    own: int = 0
    seen: int = 0
    last: float = 0.0
    last_own: float = 0.0
    changed: bool = False

    def score(self) -> float:
        if self.changed:
            return 100.0 + self.last
        own = 1 + math.log1p(self.own) + self.last_own if self.own else 0.0
        return math.log1p(self.own + self.seen) + self.last + own


@dataclass(slots=True)
class Names:
    """How often, where and how recently each name was used; counted when that is asked for, which many never do."""

    _uses: dict[str, _Use] = field(default_factory=dict)
    _noted: list[tuple[str, float, bool, bool | None]] = field(default_factory=list)
    """Texts, and paths (the last item says whether they were changed; None for a text), not counted yet."""

    def add(self, text: str, at: float, own: bool) -> None:
        """Counts the names of a text at a place (0 = oldest, 1 = newest); `own`: the model or the person said it."""
        self._noted.append((text, at, own, None))

    def add_path(self, path: str, at: float, changed: bool = False) -> None:
        """Counts a path that a call named as such, whatever its form; files that were changed come first of all."""
        self._noted.append((path, at, True, changed))

    @property
    def uses(self) -> dict[str, _Use]:
        """Each name, in the order in which they were met."""
        noted, self._noted = self._noted, []
        for text, at, own, changed in noted:
            if changed is None:
                paths, symbols = names_in(text)
                self._count(paths, True, at, own)
                self._count(symbols, False, at, own)
            else:
                self._count((text,), True, at, own)
                self._uses[text].changed |= changed
        return self._uses

    def size_chars(self) -> int:
        """What an index of all names would take, its two lines' beginnings counted."""
        return sum(len(name) + 2 for name in self._listed()) + 24

    def _listed(self) -> dict[str, _Use]:
        """Without what only tools said, and say by the dozen."""
        return {name: use for name, use in self.uses.items() if use.own or not _ONE_OF_MANY.search(name)}

    def _count(self, names: Iterable[str], path: bool, at: float, own: bool) -> None:
        for name in names:
            use = self._uses.get(name)
            if use is None:
                use = self._uses[name] = _Use(path)
            use.last = max(use.last, at)
            if own:
                use.own += 1
                use.last_own = max(use.last_own, at)
            else:
                use.seen += 1

    def ranked(self, without: Iterable[str] = ()) -> tuple[list[str], list[str]]:
        """Paths and symbols, best first (of equals the one that was met first), but those in `without`."""
        skip, uses = frozenset(without), self._listed()
        order = sorted((n for n in uses if n not in skip), key=lambda n: -uses[n].score())
        return [n for n in order if uses[n].path], [n for n in order if not uses[n].path]
