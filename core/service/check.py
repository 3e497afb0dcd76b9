"""What is wrong with a transcript, and a repaired copy of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from core.errors import WrongFormat
from core.results import Result
from core.service.operation import Operation, Target, digest_of
from core.service.session import Session, SessionRef
from core.transcript.check import check as findings_of
from core.transcript.findings import NOTES, Finding
from core.transcript.materialize import derived_id
from core.transcript.repair import repair


class FindingLine(Result):
    """One thing that is wrong, or worth knowing."""

    kind: str
    """Such as torn-tail, missing-parent, unpaired-call."""
    line: int
    """From 1; 0 for the whole file."""
    message: str
    repaired: str
    """What a repair does about it, "" for nothing."""
    damage: bool
    """Otherwise it is worth knowing, and no more."""


class CheckResult(Result):
    """All findings; `ok` when none of them is damage.

    What no repair mends is read all the same: a call without its result as one that was interrupted, and so on.
    """

    session: SessionRef
    ok: bool
    findings: list[FindingLine]
    output: str
    """The repaired copy, "" where there is none."""
    already_there: bool
    """The copy was written by an earlier run."""

    @property
    def left(self) -> int:
        """How many findings are damage that the copy has too, or would have."""
        return sum(f.damage and not f.repaired for f in self.findings)


def check(session: Session, repair_to: Path | None = None) -> CheckResult:
    """Checks an open session, read whole; with `repair_to`, a folder, writes a repaired copy into it if that helps.

    Raises `WrongFormat` when another client's transcript is to be repaired, Changed where rows were written to it since
    it was read, and what writing raises.
    """
    findings = _findings(session)
    ok = not any(f.damage for f in findings)
    output, written = None, False
    helps = session.claude is None or any(f.damage and f.repaired for f in findings)
    if repair_to is not None and not ok and helps:
        output, written = _repaired(session, repair_to)
    return CheckResult(
        session=session.ref,
        ok=ok,
        findings=findings,
        output=str(output or ""),
        already_there=output is not None and not written,
    )


def _findings(session: Session) -> list[FindingLine]:
    if session.claude:
        found: Sequence[Finding] = findings_of(*session.claude)
    else:
        found = session.conversation.findings if session.conversation else ()
    return [
        FindingLine(kind=f.kind, line=f.line, message=f.message, repaired=f.repaired, damage=f.kind not in NOTES)
        for f in found
    ]


def _repaired(session: Session, folder: Path) -> tuple[Path, bool]:
    """The repaired copy, and whether it was written just now."""
    if session.claude is None:
        raise WrongFormat(
            f"{session.path.name} is not a Claude Code transcript: it can be checked, not repaired",
            "compact it: the result is a file without damage",
        )
    log = session.claude.log
    operation = Operation(session, Target(Path(), folder), derived_id("repaired", session.file.id, str(log.size)))

    def rows() -> Iterator[bytes]:
        return chain(repair(log), [operation.title_row("repaired")])

    with operation.pending() as reason:
        if not reason:
            operation.write_streamed("repair", operation.source, digest_of(rows()), rows())
    return operation.output, not reason
