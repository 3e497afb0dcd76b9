"""What stands for a tool result that was stored (its size, where it is, how it begins), and what is too large."""

from __future__ import annotations

from pathlib import PurePath

from core.transcript.blob import Blob, utf8

EXEMPT = ("Read", "memory", "mcp__*memory*__*", "mcp__*foldmark*__*")
"""Tools without a limit of their own: what reads stored outputs back must not be stored again, and notes that a model
keeps for itself are what it needs at hand."""

_STAND_IN = """<persisted-output>
{name} gave {size}, too much to show here. The whole output is stored:
  path: {path}
Read it there in parts, or search it; {shown}. It begins:

{preview}
</persisted-output>"""


def shown_by(ident: str) -> str:
    """How a model gets back what stands under an id, by the command line or by a tool of the server."""
    return f"foldmark output SESSION {ident}, or the tool read_persisted_output, shows it"


def stand_in(name: str, chars: int, text: str, blob: Blob, folder: str, preview_bytes: int) -> str:
    """The text that stands for the output of the tool `name`: `chars` characters, of which `text` is what is shown
    the beginning of, stored as `blob` in `folder`.
    """
    return _STAND_IN.format(
        name=name,
        size=f"{chars:,} characters ({blob.form}, {len(blob.content):,} bytes)",
        path=PurePath(folder) / blob.file,
        shown=shown_by(blob.id),
        preview=_preview(text, preview_bytes),
    )


def _preview(text: str, limit_bytes: int) -> str:
    """The beginning, cut at a line end, or within a line that is longer than half of what may be shown."""
    raw = utf8(text[: limit_bytes + 1])
    head = raw[:limit_bytes]
    line_end = head.rfind(b"\n")
    if len(raw) > limit_bytes and line_end >= limit_bytes // 2:
        head = head[:line_end]
    return head.decode("utf-8", "ignore")
