"""What a summary is held against: everything that was said, called and printed, ready for looking things up."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from core.facts.names import strings_in
from core.facts.scan import Call, Talk, scan
from core.facts.text import lowered, squeezed
from core.model import Message, block_text
from core.summarizers.base import SummaryRequest

_MARKS = re.compile(r"\s*…(?:\[\d+ chars left out\]…)?\s*|\.{3}|\*")
"""Where something was cut out of a text, or stands for anything."""
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d[\d,_]*")
_GROUPED = str.maketrans("", "", ",_")
_PATH_CHARS = "-_.~/\\+@"
_LEAST_CHARS = 3


def nowhere(_path: str) -> bool:
    """A disk on which no file is."""
    return False


@dataclass(frozen=True)
class Source:
    """The messages that a summary stands for, those that stay behind it, and what else its writer was told.

    `on_disk` says whether a path is there; what is there need not be in the transcript.
    """

    request: SummaryRequest
    kept: Sequence[Message] = ()
    on_disk: Callable[[str], bool] = nowhere

    @cached_property
    def talk(self) -> Talk:
        """All of it in one pass; places below `len(request.messages)` go."""
        return scan((*self.request.messages, *self.kept))

    @cached_property
    def summaries(self) -> list[str]:
        """The earlier summaries, oldest first."""
        return [text for text in (self.request.previous, *self.talk.summaries) if text.strip()]

    @property
    def calls(self) -> list[Call]:
        """Every call, oldest first."""
        return self.talk.calls

    @cached_property
    def own(self) -> str:
        """What persons, the model and the client said, and what tools were given."""
        asked = self.request
        said = "\n".join(t for m in (*asked.messages, *self.kept) for t in texts_of(m, results=False))
        called = "\n".join(f"{call.name} {call.path}" for call in self.calls if call.path)
        return "\n".join((asked.previous, asked.instructions, asked.cwd, asked.transcript, said, called))

    @cached_property
    def printed(self) -> str:
        """What tools gave back."""
        return "\n".join(t for m in (*self.request.messages, *self.kept) for t in texts_of(m, results=True))

    def has_path(self, path: str) -> bool:
        """Whether a path, or a longer one that ends with it, occurs; or a folder and a file that make it up."""
        plain = path.replace("\\", "/").rstrip("/").removeprefix("~/").removeprefix("./")
        alike = self._by_name[plain.rpartition("/")[2]]
        if any(known == plain or known.endswith(f"/{plain}") or known[1:] == f":{plain}" for known in alike):
            return True
        if self._stands_in(path):
            return True
        return any(self._made_of(plain, known) for known in alike) or self.on_disk(path)

    def has_name(self, name: str) -> bool:
        """Whether a symbol occurs as a word; of one that is put together, every part."""
        if _WORD.fullmatch(name := name.removesuffix("()")):
            return name in self._words
        return self.has_code(name)

    def has_code(self, code: str) -> bool:
        """Whether code occurs, or at least every name in it: models write the same thing in other ways."""
        return self.has_text(code) or self._words.issuperset(_WORD.findall(code))

    def has_text(self, text: str) -> bool:
        """Whether a text occurs, whatever its white space, emphasis and capitals, but for what was cut out."""
        pieces = (squeezed(piece) for piece in _MARKS.split(text))
        return all(piece in self._squeezed for piece in pieces if len(piece) >= _LEAST_CHARS)

    def was_said(self, text: str) -> bool:
        """Whether somebody said a text, not a tool."""
        return squeezed(text) in self._squeezed_own

    def has_value(self, value: str) -> bool:
        """Whether a number (however its digits are grouped), or the beginning of a version, hash or address occurs."""
        if _NUMBER.fullmatch(value):
            return value.translate(_GROUPED) in self._numbers
        bare = value.rstrip("/.,")
        bare = bare[1:] if bare[0] == "v" and bare[1:2].isdigit() else bare
        return any(before == "v" or not before.isalnum() for before, _ in _around(self._folded, bare))

    def _made_of(self, path: str, known: str) -> bool:
        folder = path.removesuffix("/" + known)
        return folder != path and (folder == self.request.cwd.rstrip("/") or self._stands_in(folder))

    def _stands_in(self, path: str) -> bool:
        return any(
            not (before.isalnum() or (before and before in _PATH_CHARS)) and not (after.isalnum() or after == "_")
            for before, after in _around(self._text, path)
        )

    @cached_property
    def _text(self) -> str:
        return f"{self.own}\n{self.printed}"

    @cached_property
    def _folded(self) -> str:
        return lowered(self._text)

    @cached_property
    def _squeezed_own(self) -> str:
        return squeezed(self.own)

    @cached_property
    def _squeezed(self) -> str:
        return f"{self._squeezed_own}\n{squeezed(self.printed)}"

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(_WORD.findall(self._text))

    @cached_property
    def _numbers(self) -> frozenset[str]:
        found = frozenset(_NUMBER.findall(self._text))
        return found | {n.translate(_GROUPED) for n in found} | {p for n in found for p in re.split("[,_]", n)}

    @cached_property
    def _paths(self) -> frozenset[str]:
        return frozenset(name.replace("\\", "/") for name, use in self.talk.names.uses.items() if use.path)

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = defaultdict(list)
        for path in sorted(self._paths):
            names[path.rpartition("/")[2]].append(path)
        return names


def _around(text: str, part: str) -> Iterator[tuple[str, str]]:
    """The characters before and behind each place of a part, "" at the ends of the text."""
    at = text.find(part)
    while at >= 0:
        end = at + len(part)
        yield text[max(0, at - 1) : at], text[end : end + 1]
        at = text.find(part, at + 1)


def texts_of(message: Message, results: bool) -> Iterator[str]:
    """What a message says, or (`results`) what tools gave back in it; of the first its ids and its day, too."""
    if not results:
        yield " ".join((*message.uuids, message.timestamp[:10]))
    for block in message.content:
        if (block.get("type") == "tool_result") == results:
            yield block_text(block)
            yield str(block.get("name") or "")
            yield from strings_in(block.get("input"))
