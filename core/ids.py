"""Ids by name: the whole of one, or a start that only one has."""

from __future__ import annotations

from collections.abc import Iterable

from core.errors import IdNotFound

_SHOWN_CHARS = 80
"""Of a name in a message."""
_LISTED = 10


def one_of(name: str, known: Iterable[tuple[str, str]], what: str, hint: str) -> str:
    """The id that a name means: of pairs of a spelling and the id that it stands for, those that begin with the name.

    `what` says what the ids are of, `hint` where they are listed.  Raises IdNotFound for no id and for several.
    """
    found = [(spelling, ident) for spelling, ident in known if name and spelling.startswith(name)]
    exact = dict.fromkeys(ident for spelling, ident in found if spelling == name)
    ids = dict.fromkeys(ident for _, ident in found)
    if name in ids:
        return name
    for one in (exact, ids):
        if len(one) == 1:
            return next(iter(one))
    shown = name[:_SHOWN_CHARS]
    if ids:
        first = {ident: spelling for spelling, ident in reversed(found)}
        listed = [first[ident] for ident in ids]
        if len({*listed}) < len(ids):  # one spelling of several: it tells them not apart
            listed = [*ids]
        more = [f"and {len(listed) - _LISTED} more"] if len(listed) > _LISTED else []
        raise IdNotFound(f"{len(ids)} ids begin with {shown}", "\n  ".join(["name one:", *listed[:_LISTED], *more]))
    raise IdNotFound(f"no {what} has the id {shown!r}", hint)
