"""Outputs that the client itself stored: known by its own record in the row of the result, never by what the text says.

A file that is read may hold the client's wrapper, paths and all; only the record, beside the message, is the client's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from core.model import JSON, mapping, string
from core.transcript.entries import Entry
from core.transcript.reader import Log
from core.transcript.store import Store

_KEY = "persistedOutputPath"


def persisted_path(row: dict[str, JSON]) -> str:
    """Where the client stored the output of a row, as it recorded it; "" where it did not."""
    return string(mapping(row.get("toolUseResult")).get(_KEY))


def file_name(path: str) -> str:
    """The last part of a path of any system: outputs are looked for in the session's own store only."""
    return re.split(r"[/\\]", path)[-1]


def persisted_outputs(log: Log, entries: Iterable[Entry]) -> dict[str, str]:
    """The calls whose output the client stored, and where."""
    found: dict[str, str] = {}
    for entry in entries:
        if entry.type == "user" and entry.tools and _KEY.encode() in log.raw(entry):
            path = persisted_path(log.row(entry))
            found |= dict.fromkeys(entry.tools, path) if path else {}
    return found


def gone_outputs(persisted: Mapping[str, str], store: Store) -> dict[str, str]:
    """Those of them whose file is neither where it was recorded nor in the session's store."""
    there = store.files()
    return {call: path for call, path in persisted.items() if not (file_name(path) in there or os.path.isfile(path))}
