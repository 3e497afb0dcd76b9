"""The notes of a session as data: items in fixed sections, and how much room each section has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

SectionKey: TypeAlias = Literal[
    "title", "goal", "constraints", "state", "tasks", "decisions", "files", "commands", "errors", "names", "log"
]


@dataclass(frozen=True, slots=True)
class Section:
    """One section: the letter that its ids begin with, its heading, and its cap in notes of `FULL_TOKENS`."""

    key: SectionKey
    letter: str
    heading: str
    cap_tokens: int


SECTIONS = (
    Section("title", "h", "Title", 20),
    Section("goal", "g", "Goal", 400),
    Section("constraints", "c", "User constraints", 1_200),
    Section("state", "s", "Current state", 600),
    Section("tasks", "t", "Open tasks", 600),
    Section("decisions", "d", "Decisions", 900),
    Section("files", "f", "Files and symbols", 1_200),
    Section("commands", "r", "Commands and outcomes", 600),
    Section("errors", "e", "Errors and dead ends", 900),
    Section("names", "n", "Names index", 600),
    Section("log", "l", "Log", 500),
)
"""In the order of reading; the caps are those of docs/decisions/session-memory.md."""
BY_KEY: dict[SectionKey, Section] = {section.key: section for section in SECTIONS}
FULL_TOKENS = 8_000
WINDOW_SHARE = 0.04
"""The most that notes may take of a window: they stand in every request behind a compaction."""
LEAST_TOKENS = 1_600
"""What the window of 40,000 tokens, the smallest that can be set, gives."""
NAMES_MOST_TOKENS = 2_000
"""The index of names takes the room that is left: of all sections it is the one that holds most of what is needed."""
BYTES_PER_TOKEN = 3
"""Of UTF-8: a third of a token for a letter of prose with many names, one token for a CJK character."""
ID = re.compile(r"[a-z]\d{1,9}-\d{1,9}")
STATUS = re.compile(r"[a-z][a-z ]{0,23}")
_SOURCE = re.compile(r"[\w.:-]{1,100}")
"""The ids of messages that can be written down in a comment; those of all clients can."""


@dataclass(frozen=True, slots=True)
class Item:
    """One entry: what it says, where it stands (`open`, `done`, `edited`), which messages say so, since which update.

    `id` is "" for what a person wrote into the file, until the next update.
    """

    id: str
    text: str
    status: str = ""
    sources: tuple[str, ...] = ()
    update: int = 0


@dataclass(frozen=True, slots=True)
class Notes:
    """The notes of one session.  Nothing in here is changed; `with_items` gives new ones."""

    session: str = ""
    update: int = 0
    """How often they were updated."""
    covers: str = ""
    """The last message that they tell of, by its last row; "" where that is not known."""
    items: Mapping[SectionKey, tuple[Item, ...]] = field(default_factory=dict)
    """Sections without items are left out."""
    prose: Mapping[str, str] = field(default_factory=dict)
    """What a person wrote that is no entry, by section; under "" what stands in front of all sections."""
    others: tuple[tuple[str, str], ...] = ()
    """Sections that a person added: heading and text."""
    archived: Mapping[SectionKey, int] = field(default_factory=dict)
    """How many items of a section went to the archive, where any did."""

    def of(self, key: SectionKey) -> tuple[Item, ...]:
        """The items of a section, oldest first."""
        return self.items.get(key, ())

    def all(self) -> Iterator[tuple[SectionKey, Item]]:
        """Every item, in the order of reading."""
        for section in SECTIONS:
            for entry in self.of(section.key):
                yield section.key, entry

    def find(self, ident: str) -> tuple[SectionKey, Item] | None:
        """The item of an id."""
        return next(((key, entry) for key, entry in self.all() if ident and entry.id == ident), None)

    def with_items(self, key: SectionKey, items: Iterable[Item]) -> Notes:
        """The notes with other items in one section."""
        changed = {**self.items, key: tuple(items)}
        return replace(self, items={k: v for k, v in changed.items() if v})

    @property
    def is_template(self) -> bool:
        """Whether they say nothing: headings alone, or a title and a log."""
        said = any(key not in ("title", "log") for key, _ in self.all())
        return not said and not self.prose and not self.others


def item(ident: str, text: str, status: str = "", sources: Iterable[str] = (), update: int = 0) -> Item:
    """An item as it can be written down and read back: line ends are one kind, ids of messages plain and each once."""
    plain = tuple(dict.fromkeys(source for source in sources if _SOURCE.fullmatch(source)))
    return Item(ident, clean(text), status if STATUS.fullmatch(status) else "", plain, update)


def clean(text: str) -> str:
    """Text without white space at its ends, with one kind of line end, and nothing that cannot be encoded."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.encode("utf-8", "replace").decode().strip()


def tokens_of(text: str) -> int:
    """What a text of the notes takes, by its bytes."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def cost_tokens(entry: Item) -> int:
    """What an item takes where a model reads it: its text and the mark in front of that."""
    return tokens_of(f"- [{entry.id}] ({entry.status}) {entry.text}\n")


def budget_tokens(most_tokens: int, window_tokens: int) -> int:
    """The room for all notes: what is set, but no more than a share of the window."""
    return max(LEAST_TOKENS, min(most_tokens, int(WINDOW_SHARE * window_tokens)))


def names_tokens(budget: int, used_tokens: int) -> int:
    """The room for the index of names: its cap, and what `used_tokens` of all else leave, up to a limit."""
    return max(cap_tokens(BY_KEY["names"], budget), min(NAMES_MOST_TOKENS, budget - used_tokens))


def cap_tokens(section: Section, budget: int) -> int:
    """The room for one section of notes that have `budget` tokens in all."""
    return section.cap_tokens * budget // FULL_TOKENS
