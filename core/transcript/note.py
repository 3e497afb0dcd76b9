"""What a compaction's own boundary says about it: a key of the row that clients ignore."""

from __future__ import annotations

from typing import Annotated

import msgspec

from core.transcript.chain import Chain
from core.transcript.reader import Log

KEY = "foldmark"
END_TYPE = "foldmark-end"
"""The last row of a block that was appended to a transcript: whoever looks at the end of the file only, where the
boundary in front of many kept rows does not lie, sees by it that there is one."""
_Count = Annotated[int, msgspec.Meta(ge=0)]


class Note(msgspec.Struct, frozen=True, rename="camel"):
    """A compaction in short, for whoever reads the file from its boundary on."""

    leaf_uuid: str
    """The last row that it wrote."""
    keep_tokens: _Count
    """What it was asked to keep."""
    overhead_tokens: _Count
    """What is sent beside the messages; without usage figures, nothing else in the file tells it."""


def note_of(log: Log, chain: Chain) -> Note | None:
    """The note on the boundary in front of the chain; None where Foldmark wrote none."""
    row = log.row(chain.boundary) if chain.boundary else {}
    try:
        return msgspec.convert(row.get(KEY), Note)
    except msgspec.ValidationError:
        return None
