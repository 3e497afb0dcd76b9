"""OpenCode exports: form 1 (`info` and `parts` of each message) and form 2 (messages tagged by `type`)."""

from __future__ import annotations

from pathlib import Path

from core.model import JSON, mapping, mappings, sequence, string
from core.transcript.formats.blocks import report_pairs
from core.transcript.formats.conversation import Conversation, Format
from core.transcript.formats.damage import Findings, document
from core.transcript.formats.opencode_v1 import read_v1
from core.transcript.formats.opencode_v2 import read_v2


def _read(path: Path, pick: str) -> Conversation:  # noqa: ARG001 - an export holds one conversation
    findings = Findings()
    value = mapping(document(path, _matches, {"{": 1}, findings))
    info = mapping(value.get("info"))
    entries = sequence(value.get("messages"))
    listed = mappings(entries)
    if len(listed) < len(entries):
        findings.add("not-a-row", 0, "entries that are no messages were left out")
    old = any("info" in m for m in listed)
    messages, active, model = (read_v1 if old else read_v2)(info, listed, findings)
    report_pairs(messages, findings)
    return Conversation(
        FORMAT.name,
        session_id=string(info.get("id")),
        cwd=string(info.get("directory")) or string(mapping(info.get("location")).get("directory")),
        title=string(info.get("title")),
        model=model,
        client_version=string(info.get("version")),
        messages=tuple(messages),
        active=tuple(active),
        findings=findings.done(),
    )


def _matches(value: JSON) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("info"), dict):
        return False
    first = next(iter(mappings(value.get("messages"))), None)
    return "messages" in value and (first is None or "info" in first or "parts" in first or "type" in first)


FORMAT = Format("opencode", "an OpenCode export", _matches, _read)
