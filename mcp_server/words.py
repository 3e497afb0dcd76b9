"""Results in words, for people and for hosts that give the model the text of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.context.tokens.words import tokens
from core.report.words import KINDS, STATES, count, part_name, saved, whereabouts

if TYPE_CHECKING:
    from core.service.context import ContextReport
    from core.service.history import SearchResult
    from core.service.job import CompactResult
    from core.service.memory import MemoryUpdate
    from core.service.operation import Outcome
    from core.service.pages import OutputPage
    from core.service.sessions import SessionLine, SessionList
    from core.service.snip import SnipProposals, SnipResult
    from core.service.undo import UndoResult


def context_words(report: ContextReport) -> str:
    """What fills the window, and what is largest."""
    window, total = report.window, report.tokens.total
    exact = "" if report.tokens.source == "usage" else f" (estimated, ±{tokens(report.tokens.margin)})"
    lines = [
        f"{_named(report.session.id, report.session.title)}: "
        f"{tokens(total)} of {tokens(window.window_tokens)} tokens{exact}, "
        f"{count(report.messages, 'message')}; {STATES[window.state]}; "
        f"compaction is due at {tokens(window.auto_threshold_tokens)}"
    ]
    lines += (
        [f"by kind: {_counts({KINDS.get(kind, kind): size for kind, size in report.by_kind.items()})}"]
        if report.by_kind
        else []
    )
    lines += [f"tool results by tool: {_counts(report.by_tool)}"] if report.by_tool else []
    lines += ["largest:"] if report.largest else []
    lines += [f"  {p.id}  {part_name(p.kind, p.tool)}  {tokens(p.tokens)}  {p.share:.0%}" for p in report.largest]
    return "\n".join(lines)


def sessions_words(found: SessionList) -> str:
    """One line a session."""
    lines = [_session_line(line) for line in found.sessions] or ["there are no sessions"]
    return "\n".join([*lines, "there are more: a larger limit shows them"] if found.more else lines)


def _session_line(line: SessionLine) -> str:
    return f"{line.id}  {line.updated}  {tokens(line.tokens)} tokens  {line.state}  {line.project}  {line.title}"


def search_words(found: SearchResult) -> str:
    """One line a hit."""
    lines = [f"{h.id}:{h.line} ({part_name(h.kind, h.name)}, {h.where})  {h.text}" for h in found.hits] or ["not found"]
    return "\n".join([*lines, "there are more: a larger limit, or a longer text, finds them"] if found.more else lines)


def page_words(page: OutputPage) -> str:
    """The text behind a line that says what it is, and before one that says what to ask for next."""
    what = f"{page.id} ({part_name(page.kind, page.name)}, {page.where}), {page.total_lines} lines"
    if not page.text:
        behind = "offset" if page.offset else "line" if page.first_line > page.total_lines else ""
        return f"{what}: {f'nothing behind this {behind}' if behind else 'nothing matches'}"
    end = page.offset + len(page.text)
    if page.next_offset is None:
        return f"{what}\n{page.text}"
    more = f"[{end:,} of {page.total_chars:,} characters shown: go on with offset={page.next_offset}]"
    return f"{what}\n{page.text}\n{more}"


def compact_words(result: CompactResult) -> str:
    """What was saved, where the result is, and the way on and back."""
    if result.how == "none":
        return f"nothing to do: {result.reason}"
    what = whereabouts(result.how, result.loss.kept, result.loss.reachable)
    lines = [f"{saved(result.tokens_before, result.tokens_after)}; {what}", *result.verdicts]
    return "\n".join([*lines, *_ways(result)])


def snip_words(result: SnipResult) -> str:
    """What was taken out, and the way on and back."""
    lines = [
        f"{count(result.messages, 'message')} from {result.from_id} to {result.to_id}: "
        f"{saved(result.tokens_before, result.tokens_after)}",
        *result.verdicts,
    ]
    return "\n".join([*lines, *_ways(result)])


def proposals_words(found: SnipProposals) -> str:
    """One line a range that may go."""
    lines = [
        f"{p.from_id} to {p.to_id}: {count(p.messages, 'message')}, {tokens(p.tokens)} tokens; "
        f"{', '.join(p.reasons)}; {p.verdict}"
        for p in found.proposals
    ]
    return "\n".join(lines) or f"nothing to propose: {found.reason}"


def undo_words(result: UndoResult) -> str:
    """What was taken back."""
    if result.removed:
        return f"removed {result.path}; what it was made of is as it was"
    return f"took back {result.op} of {result.path}"


def memory_words(done: MemoryUpdate) -> str:
    """What was noted, and what was not."""
    if not done.changed:
        return f"the notes are as they were: {done.reason}"
    of = f" of {count(done.messages, 'message')}" if done.messages else ""
    archived = f", {done.archived} entries left them" if done.archived else ""
    what = f"{count(done.operations, 'change')}{of} in the notes{archived}: {done.path}"
    return "\n".join([what, *(f"refused: {reason}" for reason in done.refused)])


def _ways(result: Outcome) -> list[str]:
    lines = [*result.warnings, result.standing]
    lines += [f"resume with: {result.resume}"] if result.resume else []
    return [*lines, "undo takes it back"] if result.undo else lines


def _named(ident: str, title: str) -> str:
    return f"{ident} ({title})" if title else ident


def _counts(counts: dict[str, int]) -> str:
    return "; ".join(f"{name} {tokens(size)}" for name, size in counts.items())
