"""What can be wrong with a transcript, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

FindingKind: TypeAlias = Literal[
    "joined-line", "spliced-line", "torn-tail", "garbage-line", "not-a-row", "pretty-printed", "bad-bytes",
    "no-final-newline", "duplicate-uuid", "missing-parent", "cycle", "no-timestamp", "odd-row",
    "unpaired-call", "open-call", "orphan-result", "duplicate-call", "unsigned-thinking",
    "history-not-in-file", "preserved-not-in-file", "long-line", "cut-block", "gone-output",
    "cut-document", "text-before", "unknown-type", "missing-part", "request-failed", "rolled-back", "pruned-output",
]  # fmt: skip
"""joined-line: whole records without a line end between them.  spliced-line: a cut record with a whole one behind it.
torn-tail: the last record is cut.  garbage-line: bytes that are no record.  not-a-row: JSON, but no row.
pretty-printed: one record over several lines.  bad-bytes: no UTF-8, NUL bytes, a byte-order mark, half a surrogate.
duplicate-uuid: two rows of one id, no compaction between them.  odd-row: part of a conversation, but no id or content.
unpaired-call, orphan-result: the other half is nowhere in the file.  open-call: the result may still come.
duplicate-call: one id for two calls.
history-not-in-file, preserved-not-in-file: what a compaction refers to is not there.  long-line: over a megabyte.
cut-block: a compaction in place of which the end was never written.
gone-output: what was stored beside the transcript is not there any more.
Of other clients alone: cut-document: JSON that is cut or broken.  text-before: text in front of the JSON.
unknown-type: a record, message or block of a type that nobody knows.  missing-part: a message lacks what makes it one.
request-failed: there is no answer.  rolled-back, pruned-output: the client itself took it out."""

NOTES: frozenset[FindingKind] = frozenset(
    {
        *("no-final-newline", "open-call", "history-not-in-file", "preserved-not-in-file", "long-line", "gone-output"),
        *("rolled-back", "pruned-output"),
    }
)
"""Kinds that are worth knowing, but no damage: nothing that was in the file is lost or misread."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a file: what, where, and how it was read all the same."""

    kind: FindingKind
    offset: int
    """Of the first byte that it is about; 0 of other clients' files."""
    message: str
    line: int = 0
    """The physical line, from 1; 0 where nobody counted, and for the whole file."""
    repaired: str = ""
    """What a repair does about it; empty: nothing."""
