"""Verifies a summary against what it stands for, mends it without a model, and says how true and complete it is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from core.compaction.claims import Claim, blanked, without_marks
from core.compaction.ledger import mended
from core.compaction.needs import Need
from core.compaction.precision import precision
from core.compaction.recall import Recall
from core.compaction.source import Source, nowhere
from core.errors import ApiError, SummaryRejected
from core.facts.text import one_line, squeezed, unmarked
from core.model import Message
from core.redact.text import redact
from core.summarizers.answer import CALL_SYNTAX
from core.summarizers.base import Summary, SummaryRequest, growth_chars, room_tokens
from core.summarizers.extractive.sections import LEDGER, SECTIONS, split_ledger
from core.summarizers.repair import EVIDENCE_CHARS, Fault, Repairer, replaced_in, section_at

PRECISION, RECALL = 0.97, 1.0
"""From here on a summary counts as faithful."""
_QUOTED = re.compile(r"^(~{3,}(?!~)|`{3,}(?!`)).*?^\1[ \t]*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_WHY = {"tests": "no successful test run since the last change", "order": "a tool printed it, nobody asked for it"}
_LINE_CHARS = 240
_PROSE_WORDS = 4
"""A line with more words beside a name is a sentence about it."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What the summariser's text is worth: the shares of its claims that hold, and of what must be known it says.

    `missing`, `unverifiable` and `contradicted` were found in that text; `repaired` says that the text which was made
    of it is faithful.  `tokens` count all of the text that is used, `ledger_tokens` its ledger.
    """

    precision: float
    recall: float
    missing: tuple[Need, ...] = ()
    unverifiable: tuple[Claim, ...] = ()
    contradicted: tuple[Claim, ...] = ()
    tokens: int = 0
    ledger_tokens: int = 0
    repaired: bool = False

    @property
    def faults(self) -> tuple[Claim, ...]:
        """All that is not so."""
        return (*self.unverifiable, *self.contradicted)

    @property
    def faithful(self) -> bool:
        """Whether nothing that matters is wrong or missing."""
        return not self.contradicted and self.precision >= PRECISION and self.recall >= RECALL


@dataclass(frozen=True, slots=True)
class Limits:
    """How tokens are counted, and those of what a summary stands for (None: it may have as many)."""

    measure: Callable[[str], int] = room_tokens
    before_tokens: int | None = None


def verified(
    summary: Summary,
    request: SummaryRequest,
    kept: Sequence[Message] = (),
    limits: Limits = Limits(),
    repairer: Repairer | None = None,
    on_disk: Callable[[str], bool] = nowhere,
) -> tuple[Summary, Verification]:
    """A summary that holds: marked, with a ledger of what was missing, and what was found.

    `request` is what the summariser was asked, `kept` the messages that stay behind the summary.  Only where prose is
    wrong the `repairer` is asked, once.  Raises `SummaryRejected` for a text that cannot be used at all; then another
    summariser should be asked.
    """
    source = Source(request, kept, on_disk)
    text = split_ledger(summary.text)[0]
    check_form(replace(summary, text=text), source, limits)
    recall = Recall(source)
    found = _verify(text, source, recall)
    mended_by = repairer if repairer and _prose_is_wrong(text, found) else None
    if mended_by:
        summary, found = _asked_again(replace(summary, text=text), found, source, recall, limits, mended_by)
        text = summary.text
    final = mended(text, found.faults, found.missing)
    after = _verify(final, source, recall) if final != text else found
    ledger = split_ledger(final)[1]
    return replace(summary, text=final), replace(
        found,
        tokens=limits.measure(final),
        ledger_tokens=limits.measure(ledger) if ledger else 0,
        repaired=not found.faithful and after.faithful,
    )


def verify(text: str, source: Source) -> Verification:
    """How true and how complete a text is, a ledger in it counted."""
    return _verify(text, source, Recall(source))


def _verify(text: str, source: Source, recall: Recall) -> Verification:
    true, missing = precision(text, source), recall.missing(text)
    return Verification(true.share, recall.share(missing), missing, true.unverifiable, true.contradicted)


def check_form(summary: Summary, source: Source, limits: Limits) -> None:
    """Raises `SummaryRejected` for what is no summary: empty, a tool call, too long, with sections twice."""
    if reason := _fault_of_form(without_marks(summary.text), source, limits):
        raise SummaryRejected(
            f"the summary of {summary.summarizer} {reason}", "try again, or choose another {summarizer}"
        )


def _fault_of_form(text: str, source: Source, limits: Limits) -> str:
    if not text.strip():
        return "is empty"
    lines = blanked(text, (m.span() for m in _QUOTED.finditer(text))).splitlines()
    if any(CALL_SYNTAX.search(line) and not source.has_text(unmarked(line)) for line in lines):
        return "holds a call of a tool"
    headings = Counter(line.removeprefix("## ").strip() for line in lines if line.startswith("## "))
    twice = [title for title in (*(s.title for s in SECTIONS), LEDGER) if headings[title] > 1]
    if twice:
        return f"has the section {twice[0]!r} more than once"
    if len(text) > source.request.budget_chars:
        return f"has {len(text):,} characters, and {source.request.budget_chars:,} are allowed"
    if limits.before_tokens is not None and (tokens := limits.measure(text)) >= limits.before_tokens:
        return f"has {tokens:,} tokens, no less than the {limits.before_tokens:,} that it stands for"
    if source.summaries and len(text) > growth_chars(source.summaries):
        return "is more than a quarter longer than the one that it updates"
    return ""


def _prose_is_wrong(text: str, found: Verification) -> bool:
    return bool(found.contradicted) or any(c.kind == "path" and _in_sentence(text, c) for c in found.unverifiable)


def _in_sentence(text: str, claim: Claim) -> bool:
    start = text.rfind("\n", 0, claim.start) + 1
    return len((text[start : claim.start] + text[claim.end :].partition("\n")[0]).split()) > _PROSE_WORDS


def _asked_again(
    summary: Summary, found: Verification, source: Source, recall: Recall, limits: Limits, repairer: Repairer
) -> tuple[Summary, Verification]:
    """The summary with the sections that were written anew, if it is the better for it; the call is paid for anyway."""
    text = summary.text
    faults = [
        Fault(section_at(text, c.start), one_line(c.text), _WHY.get(c.kind, "it is not in the conversation"))
        for c in found.faults
    ]
    try:
        repair = repairer.repair(text, faults, evidence(found.faults, source))
    except ApiError as error:
        if error.kind == "cancelled":
            raise
        return summary, found
    summary = replace(summary, usage=summary.usage + repair.usage)
    new = replace(summary, text=replaced_in(text, repair.sections))
    with suppress(SummaryRejected):
        check_form(new, source, limits)
        better = _verify(new.text, source, recall)
        if len(better.faults) < len(found.faults) and better.recall >= found.recall:
            return new, better
    return summary, found


def evidence(faults: Sequence[Claim], source: Source) -> str:
    """Lines of the conversation that have most to do with some faults: the newest ones that share their words."""
    wanted = {word for fault in faults for word in re.findall(r"\w{4,}", fault.text.casefold())}
    scored: list[tuple[int, int, str]] = []
    for n, line in enumerate((*source.own.splitlines(), *source.printed.splitlines())):
        shared = len(wanted.intersection(re.findall(r"\w{4,}", line[:_LINE_CHARS].casefold())))
        if shared:
            scored.append((shared, n, line.strip()[:_LINE_CHARS]))
    room = EVIDENCE_CHARS
    chosen: dict[str, tuple[int, str]] = {}
    for _, n, line in sorted(scored, key=lambda s: (-s[0], -s[1])):
        if len(line) + 1 <= room and squeezed(line) not in chosen:
            chosen[squeezed(line)] = (n, line)
            room -= len(line) + 1
    return redact("\n".join(line for _, line in sorted(chosen.values())))
