"""Codex rollouts: one JSON object on each line, from the bare era of 2025 to the paginated files of 2026."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from core.model import JSON, Block, Message, Usage, block_text, count, mapping, mappings, string, text_block
from core.transcript.formats.blocks import Messages, report_pairs
from core.transcript.formats.codex_items import ITEM_TYPES, Grouper
from core.transcript.formats.conversation import Conversation, Format
from core.transcript.formats.damage import Findings, records

_LOCAL_SUMMARY_USER_CHARS = 80_000
"""User text that the client keeps beside a summary of its own: about 20,000 tokens, of four characters each."""
_RECORD_TYPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"})
_OTHER_TYPES = frozenset(
    {"inter_agent_communication", "inter_agent_communication_metadata", "token_usage_record", "security_risk_score"}
)
"""Known records that hold no conversation."""
_CWD = re.compile(r"<cwd>([^<]*)</cwd>")


@dataclass(frozen=True, slots=True)
class _Compaction:
    """A point at which the client replaced its history: by a list of its own, or by user messages and the summary."""

    replacement: tuple[Message, ...]
    summary: Message | None = None


class _Rollout:
    """The state of the client, rebuilt record by record.

    `steps` is what made up its history: positions of messages, and compactions.  A rollback cuts the end off.
    """

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.built = Messages()
        self.grouper = Grouper(self.built, findings)
        self.meta: dict[str, JSON] = {}
        self.model = ""
        self.context_tokens = 0
        self._steps: list[int | _Compaction] = []
        self._turns: list[int] = []
        self._task_start: int | None = None
        self._in_task = False
        self._last_total: JSON = None

    def read(self, line: int, record: dict[str, JSON]) -> None:
        """Takes one record in."""
        payload = record.get("payload")
        kind = string(record.get("type"))
        if not isinstance(payload, dict):
            self._bare(line, kind, record)
            return
        timestamp = string(record.get("timestamp"))
        match kind:
            case "session_meta":
                self._identify(payload)
            case "turn_context":
                self.model = string(payload.get("model")) or self.model
            case "response_item":
                self._item(line, payload, timestamp)
            case "compacted":
                self._compact(line, payload, timestamp)
            case "event_msg":
                self._event(line, payload)
            case _ if kind not in _RECORD_TYPES | _OTHER_TYPES:
                self.findings.add("unknown-type", line, f"a record of the unknown type {kind or '(none)'!r}")

    def active(self) -> list[Message]:
        """What the client would send: the newest surviving replacement, and all after it."""
        self._flush()
        history: list[Message] = []
        for step in self._steps:
            if isinstance(step, int):
                history.append(self.built.all[step])
            elif step.summary is None:
                history = list(step.replacement)
            else:
                history = [*_newest_prompts(history), step.summary]
        return history

    def _identify(self, payload: dict[str, JSON]) -> None:
        """The first one names the file; those after it are copies of the session that it was forked from."""
        if self.meta:
            return
        self.meta = payload
        base = mapping(payload.get("history_base"))
        if base:
            self.findings.add(
                "history-not-in-file", 1, f"the history begins in the rollout of {string(base.get('thread_id'))}"
            )

    def _bare(self, line: int, kind: str, record: dict[str, JSON]) -> None:
        if kind in ITEM_TYPES:
            self._item(line, record, "")
        elif not kind and isinstance(record.get("id"), str) and not self.meta:
            self.meta = record
        elif "record_type" not in record:
            self.findings.add("unknown-type", line, f"a record of the unknown type {kind or '(none)'!r}")

    def _item(self, line: int, item: dict[str, JSON], timestamp: str) -> None:
        before = len(self.built.all)
        self.grouper.take(line, item, timestamp)
        self._note(before)

    def _flush(self) -> None:
        before = len(self.built.all)
        self.grouper.flush()
        self._note(before)

    def _note(self, before: int) -> None:
        for i in range(before, len(self.built.all)):
            if self.built.all[i].kind == "prompt":
                self._open_turn()
            self._steps.append(i)

    def _open_turn(self) -> None:
        """A turn begins with its task, which a real user message makes count; a second one in it only steers."""
        if self._task_start is not None:
            self._turns.append(self._task_start)
            self._task_start = None
        elif not self._in_task:
            self._turns.append(len(self._steps))

    def _event(self, line: int, payload: dict[str, JSON]) -> None:
        match payload.get("type"):
            case "task_started":
                self._flush()
                self._task_start, self._in_task = len(self._steps), True
            case "task_complete" | "turn_aborted":
                self._flush()
                self._task_start, self._in_task = None, False
            case "thread_rolled_back":
                self._roll_back(line, count(payload.get("num_turns")))
            case "token_count":
                self._count_tokens(mapping(payload.get("info")))

    def _roll_back(self, line: int, turns: int) -> None:
        self._flush()
        dropped = self._turns[-turns:] if turns else []
        if dropped:
            del self._steps[dropped[0] :]
            del self._turns[-turns:]
            self.findings.add("rolled-back", line, f"turns that were rolled back here: {len(dropped)}")
        self._task_start, self._in_task = None, False

    def _count_tokens(self, info: dict[str, JSON]) -> None:
        """Gives the figures of a request to the response before it.

        The client repeats the last figures now and then, and after a compaction writes an estimate of the new
        context in which all but the total is zero: neither is a request.
        """
        self._flush()
        last = mapping(info.get("last_token_usage"))
        self.context_tokens = count(last.get("total_tokens")) or self.context_tokens
        repeated = info.get("total_token_usage") == self._last_total
        self._last_total = info.get("total_token_usage")
        usage = _usage(last)
        if repeated or not usage.total_tokens:
            return
        for step in reversed(self._steps):
            if isinstance(step, int) and self.built.all[step].role == "assistant":
                if self.built.all[step].usage is None:
                    self.built.all[step] = replace(self.built.all[step], usage=usage, model=self.model)
                return

    def _compact(self, line: int, payload: dict[str, JSON], timestamp: str) -> None:
        """Notes the summary; it is opaque when the vendor's server wrote it, or when only its item is gone."""
        self._flush()
        text = string(payload.get("message")).strip()
        fresh = Messages(f"line {line}")
        grouper = Grouper(fresh, self.findings)
        for item in mappings(payload.get("replacement_history")):
            grouper.take(line, item, timestamp)
        grouper.flush()
        replacement = [_marked(m, text) for m in fresh.all]
        summary = next((m for m in reversed(replacement) if m.kind == "summary"), None)
        block: Block = text_block(text) if text else {"type": "compaction", "content": None}
        content = summary.content if summary else (block,)
        noted = self.built.add("user", "summary", content, timestamp=timestamp)
        if noted and summary:
            replacement = [noted if m is summary else m for m in replacement]
        local = noted if text and not replacement else None
        self._steps.append(_Compaction(tuple(replacement), local))


def _marked(message: Message, summary: str) -> Message:
    """The message as a summary if it carries the text of one."""
    if summary and message.role == "user" and any(summary in block_text(b) for b in message.content):
        return replace(message, kind="summary")
    return message


def _newest_prompts(history: Iterable[Message]) -> list[Message]:
    """The user's own messages, as many of the newest as the client keeps beside its summary."""
    kept: list[Message] = []
    room = _LOCAL_SUMMARY_USER_CHARS
    for message in reversed([m for m in history if m.kind == "prompt"]):
        room -= sum(len(block_text(b)) for b in message.content)
        if room < 0:
            break
        kept.append(message)
    return kept[::-1]


def _usage(last: dict[str, JSON]) -> Usage:
    """One request; the client's input figure includes what came from and went to the cache."""
    read, written = count(last.get("cached_input_tokens")), count(last.get("cache_write_input_tokens"))
    fresh = max(0, count(last.get("input_tokens")) - read - written)
    return Usage(fresh, written, read, count(last.get("output_tokens")))


def _matches(value: JSON) -> bool:
    if not isinstance(value, dict):
        return False
    if "type" not in value:
        return {"id", "timestamp", "instructions"} <= value.keys() or "record_type" in value
    return string(value["type"]) in _RECORD_TYPES and isinstance(value.get("payload"), dict)


def _read(path: Path, pick: str) -> Conversation:  # noqa: ARG001 - a rollout holds one conversation
    findings = Findings()
    rollout = _Rollout(findings)
    for line, record in records(path, findings):
        rollout.read(line, record)
    active = rollout.active()
    messages = rollout.built.all
    report_pairs(messages, findings)
    meta = rollout.meta
    texts = (block_text(b) for m in messages if m.role == "user" for b in m.content)
    cwd = string(meta.get("cwd")) or next((found[1] for text in texts if (found := _CWD.search(text))), "")
    base = meta.get("base_instructions")
    return Conversation(
        FORMAT.name,
        session_id=string(meta.get("id")),
        cwd=cwd,
        model=rollout.model,
        client_version=string(meta.get("cli_version")),
        messages=tuple(messages),
        active=tuple(active),
        system=string(mapping(base).get("text")) or string(meta.get("instructions")),
        context_tokens=rollout.context_tokens,
        findings=findings.done(),
    )


FORMAT = Format("codex", "a Codex rollout", _matches, _read)
