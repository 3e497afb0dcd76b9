"""OpenCode exports of form 1 (clients 1.x): `{info, messages: [{info, parts[]}]}`."""

from __future__ import annotations

from core.model import JSON, Block, Kind, Message, mapping, mappings, string, text_block
from core.transcript.formats.blocks import Messages, call_block, media_block, result_block, thinking_block
from core.transcript.formats.damage import Findings
from core.transcript.formats.opencode_parts import calls_first, iso_time, usage_of

_Source = dict[str, JSON]
_SILENT = frozenset({"step-start", "step-finish", "compaction", "subtask", "patch", "snapshot", "agent", "retry"})
"""Parts that hold no conversation."""


def read_v1(info: _Source, sources: list[_Source], findings: Findings) -> tuple[list[Message], list[Message], str]:
    """All messages, those that the client would send, and the newest model."""
    built = Messages()
    groups: list[tuple[_Source, list[Message]]] = []
    model = ""
    for source in sources:
        head = mapping(source.get("info"))
        parts = mappings(source.get("parts"))
        if not head or not isinstance(source.get("parts"), list):
            missing = "parts" if head else "info"
            findings.add("missing-part", 0, f"message {string(head.get('id')) or '(no id)'} has no {missing}")
        before = len(built.all)
        if head.get("role") == "assistant":
            model = string(head.get("modelID")) or model
            _add_answer(built, head, parts, findings)
        elif head.get("role") == "user":
            _add_user(built, head, parts, findings)
        elif head:
            findings.add("unknown-type", 0, f"message {string(head.get('id'))} has an unknown role")
        groups.append((head, built.all[before:]))
    return built.all, _active(info, sources, groups), model


def _add_user(built: Messages, head: _Source, parts: list[_Source], findings: Findings) -> None:
    """Adds what was typed, and beside it what the client put in or keeps for the screen only."""
    name, timestamp = string(head.get("id")), iso_time(head)
    typed: list[Block] = []
    for part in parts:
        if part.get("type") == "text" and (part.get("synthetic") or part.get("ignored")):
            built.add("user", "prompt", typed, name, timestamp=timestamp)
            typed = []
            kind: Kind = "command" if part.get("ignored") else "meta"
            built.add("user", kind, [text_block(string(part.get("text")))], name, timestamp=timestamp)
        elif block := _block(part, findings):
            typed.append(block)
    built.add("user", "prompt", typed, name, timestamp=timestamp)


def _add_answer(built: Messages, head: _Source, parts: list[_Source], findings: Findings) -> None:
    name, timestamp, model = string(head.get("id")), iso_time(head), string(head.get("modelID"))
    if _is_summary(head):
        texts = [text_block(text) for p in parts if p.get("type") == "text" and (text := string(p.get("text")))]
        built.add("user", "summary", texts, name, timestamp=timestamp, model=model, usage=usage_of(head))
        return
    pairs = [(block, _result(part, findings)) for part in parts if (block := _block(part, findings))]
    built.add_steps(calls_first(pairs), name, timestamp=timestamp, model=model, usage=usage_of(head))


def _is_summary(head: _Source) -> bool:
    """Whether an answer is the finished summary of a compaction; an unfinished or failed one is no boundary."""
    return head.get("summary") is True and bool(head.get("finish")) and not head.get("error")


def _block(part: _Source, findings: Findings) -> Block | None:
    match part.get("type"):
        case "text":
            return text_block(string(part["text"])) if part.get("text") else None
        case "reasoning":
            return thinking_block(string(part.get("text")))
        case "file":
            return _file(part)
        case "tool":
            return call_block(string(part.get("callID")), string(part.get("tool")), _state(part).get("input") or {})
        case kind if string(kind) not in _SILENT:
            findings.add("unknown-type", 0, f"a part of the unknown type {string(kind) or '(none)'!r}")
    return None


def _file(part: _Source) -> Block:
    mime, url = string(part.get("mime")), string(part.get("url"))
    if mime.startswith("text/") or not url.startswith(("data:", "http")):
        return text_block(f"[file: {string(part.get('filename')) or url or mime}]")
    return media_block(mime, url)


def _state(part: _Source) -> _Source:
    return mapping(part.get("state"))


def _result(part: _Source, findings: Findings) -> Block | None:
    """The result of a tool part, if it has one; pruned outputs are still stored in full, and told of."""
    if part.get("type") != "tool":
        return None
    state, call = _state(part), string(part.get("callID"))
    metadata = mapping(state.get("metadata"))
    if mapping(state.get("time")).get("compacted"):
        findings.add("pruned-output", 0, f"the client sends a stand-in for the output of {call}")
    if state.get("status") == "completed":
        media = [_file(a) for a in mappings(state.get("attachments"))]
        output = string(state.get("output"))
        return result_block(call, [text_block(output), *media] if media else output)
    if state.get("status") == "error":
        if metadata.get("interrupted") and isinstance(metadata.get("output"), str):
            return result_block(call, string(metadata["output"]))
        return result_block(call, string(state.get("error")), error=True)
    return None


def _active(info: _Source, sources: list[_Source], groups: list[tuple[_Source, list[Message]]]) -> list[Message]:
    """What is sent: nothing that was reverted or failed, nothing before the last compaction but its tail."""
    reverted = string(mapping(info.get("revert")).get("messageID"))
    end = next((i for i, (head, _) in enumerate(groups) if reverted and head.get("id") == reverted), len(groups))
    order = list(range(end))
    boundary, summary = _last_boundary(sources, groups, end)
    if boundary is not None and summary is not None:
        first = _tail_start(sources[boundary], groups, boundary)
        order = [boundary, summary, *range(first, boundary), *(i for i in range(boundary + 1, end) if i != summary)]
    return [m for i in order if _counts(groups[i][0], sources[i]) for m in groups[i][1] if m.kind != "command"]


def _last_boundary(
    sources: list[_Source], groups: list[tuple[_Source, list[Message]]], end: int
) -> tuple[int | None, int | None]:
    """The newest user message that asked for a compaction, and the finished summary that answers it."""
    asked = {
        string(groups[i][0].get("id")): i
        for i in range(end)
        if any(p.get("type") == "compaction" for p in mappings(sources[i].get("parts")))
    }
    for i in range(end - 1, -1, -1):
        head = groups[i][0]
        if _is_summary(head) and string(head.get("parentID")) in asked:
            return asked[string(head.get("parentID"))], i
    return None, None


def _tail_start(source: _Source, groups: list[tuple[_Source, list[Message]]], boundary: int) -> int:
    """Where the part begins that the compaction kept; the boundary itself when it kept none."""
    tails = [string(p.get("tail_start_id")) for p in mappings(source.get("parts")) if p.get("type") == "compaction"]
    wanted = next(filter(None, tails), "")
    return next((i for i in range(boundary) if wanted and groups[i][0].get("id") == wanted), boundary)


def _counts(head: _Source, source: _Source) -> bool:
    """Whether a message is sent: one that failed is not, unless it was stopped with something useful in it."""
    error = mapping(head.get("error"))
    if not error:
        return True
    useful = any(p.get("type") not in ("step-start", "reasoning") for p in mappings(source.get("parts")))
    return error.get("name") == "MessageAbortedError" and useful
