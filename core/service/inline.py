"""Conversations that come without a file: messages of the API in, fewer messages out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from core.errors import UnknownFormat
from core.model import JSON
from core.service.job import CompactResult
from core.service.session import opened
from core.service.view import view
from core.transcript.projects import SessionFile, session_file


class InlineResult(CompactResult):
    """A compaction, and the messages that the next request is made of.

    `output` holds them too; what was taken out is stored beside it.
    """

    messages: list[dict[str, Any]]


@contextmanager
def spooled(messages: Sequence[Mapping[str, JSON]]) -> Iterator[SessionFile]:
    """The messages as a transcript that is there as long as the context lasts; raises UnknownFormat for none."""
    if not messages or any(message.get("role") not in ("user", "assistant") for message in messages):
        raise UnknownFormat("these are no messages", 'each is {"role": "user" or "assistant", "content": ...}')
    with TemporaryDirectory(prefix="foldmark-") as folder:
        path = Path(folder) / "messages.json"
        path.write_bytes(msgspec.json.encode({"messages": messages}))
        yield replace(session_file(path), piped=True)


def with_messages(result: CompactResult) -> InlineResult:
    """The result with what its output holds, or would go on to hold where nothing was written."""
    with opened(session_file(Path(result.output))) as session:
        return InlineResult(**msgspec.structs.asdict(result), messages=view(session).messages)
