"""Sets that are announced once, and then by their differences: the fold that all delta kinds share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from core.attachments.base import Attachment, World, of_kind


class Delta(Attachment, frozen=True):
    """What came into a set and what left it; each kind says which set of the world it is about."""

    @property
    def added(self) -> Mapping[str, str]:
        """Name -> what is said about it; also of what is there already, and has changed."""
        raise NotImplementedError

    @property
    def removed(self) -> Sequence[str]:
        """The names that are there no more."""
        raise NotImplementedError

    @classmethod
    def current(cls, world: World) -> Mapping[str, str] | None:
        """The whole set now, None where it is not known."""
        raise NotImplementedError

    @classmethod
    def of(cls, added: Mapping[str, str], removed: Sequence[str], is_first: bool) -> Self:
        """The attachment that announces a difference; the first one announces the whole set."""
        raise NotImplementedError

    @classmethod
    def scan(cls, world: World, earlier: Sequence[Attachment]) -> Sequence[Self]:
        """The difference between the set now and the set announced, if there is one."""
        current = cls.current(world)
        if current is None:
            return ()
        announced = announced_by(of_kind(cls, earlier))
        added = {name: line for name, line in current.items() if announced.get(name) != line}
        removed = [name for name in announced if name not in current]
        return (cls.of(added, removed, not announced),) if added or removed else ()


def announced_by(deltas: Iterable[Delta]) -> dict[str, str]:
    """The set that some deltas, in their order, come to."""
    announced: dict[str, str] = {}
    for delta in deltas:
        announced |= delta.added
        for name in delta.removed:
            announced.pop(name, None)
    return announced


def said(head: str, lines: Iterable[str]) -> list[str]:
    """A paragraph of an announcement; nothing where it has no lines."""
    listed = [*lines]
    return ["\n".join([head, *listed])] if listed else []
