"""Short ids of messages, for a person or a model to name them by: `[id:k3v9qd]` at the end of what is sent."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.ids import one_of
from core.model import Message, call_id, tool_results, tool_uses

LENGTH = 6
"""Of 32 letters each: among 10,000 messages one pair in twenty sessions collides, and then the later one is longer."""
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Without i, l, o, u: they are taken for 1, 1, 0, v."""


@dataclass(frozen=True, slots=True)
class ShortIds:
    """The short ids of some messages, and where each name leads."""

    _short: Mapping[str, str]
    _long: Mapping[str, str]
    """Uuid of the message by each of its rows' uuids, its calls and its short id."""

    @classmethod
    def of(cls, messages: Sequence[Message]) -> ShortIds:
        """The ids of messages; those of earlier ones do not depend on later ones."""
        short: dict[str, str] = {}
        taken: dict[str, str] = {}
        for uuid in filter(None, dict.fromkeys(m.uuid for m in messages)):
            whole = _letters(uuid)
            free = next(whole[:n] for n in range(LENGTH, len(whole) + 1) if whole[:n] not in taken)
            short[uuid] = free
            taken[free] = uuid
        longer: dict[str, str] = {}
        for message in messages:
            for block in (*tool_uses(message), *tool_results(message)):
                longer.setdefault(call_id(block) or message.uuid, message.uuid)
            for uuid in message.uuids:
                longer[uuid] = message.uuid
        return cls(short, longer | taken)

    def short(self, uuid: str) -> str:
        """The short id of a message; the uuid itself where it is not one of these."""
        return self._short.get(uuid, uuid)

    def find(self, name: str) -> str:
        """The uuid of the message that a short id, a uuid, a call's id or the start of one of these names.

        Raises IdNotFound for none and for several.
        """
        wanted = name.strip().removeprefix("[").removesuffix("]").removeprefix("id:").strip()
        hint = "{proposals} and {context} name ids"
        return one_of(wanted, self._long.items(), "message of the active context", hint)


def tag(short: str) -> str:
    """How a short id stands at the end of a message."""
    return f"[id:{short}]"


def _letters(uuid: str) -> str:
    number = int.from_bytes(hashlib.sha256(uuid.encode("utf-8", "surrogatepass")).digest())
    return "".join(_ALPHABET[number >> 5 * n & 31] for n in range(51))
