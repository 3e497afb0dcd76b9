"""Has each stage change every sample transcript, and puts the results before the real client.

    python -m scripts.compare_stages --shared DIR [--clients new old] [--stages budget snip ...] [--in-place]
                                     [--only PART ...] [--jobs 2]

For every main transcript below DIR/real (or whose path holds one of the PARTs) that the newest client resumes, and
for each stage: the stage is told to act, with limits so small that it has something to do, and what it comes to is
written to a new session (or appended to a copy).  What `foldmark view` says must be what the stage foresaw, and all
that `compare_compacted` asks must hold: the source is not touched, a second run changes nothing, undo gives back
what was there, and each client sends exactly what `foldmark view` says, without compacting again; the rows in
front of the first change in the way of its own version.  DIR is not in this repository: it is as for `compare_client`.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import msgspec

from core.context.view import api_messages
from core.errors import FoldmarkError, InputError
from core.model import Message
from core.service.operation import Target
from core.service.session import opened
from core.service.stages import StageResult, StageRun, StageSettings, run_stages
from core.stages.base import Plan, applied
from core.stages.collapse import Collapse
from core.stages.media import Media, MediaSettings
from core.stages.microcompact import Microcompact
from core.stages.read_dedup import ReadDedup
from core.stages.snip import Snip
from core.stages.tool_budget import ToolBudget, ToolBudgetSettings
from core.transcript.projects import session_file
from scripts.compare_client import answer, comparer, transcripts
from scripts.compare_compacted import Outcome, copied, resumed_by, told, undone

REAL = "/real/"
FORCED = StageSettings(forced=True)


def snipped(run: StageRun) -> Plan:
    """The range that is proposed first, or the middle third of the history."""
    proposals = Snip().suggest(run.scene)
    if proposals:
        return proposals[0].plan
    messages = run.scene.view().messages
    third = len(messages) // 3
    for end in range(2 * third, third, -1):
        try:
            return Snip().plan_range(run.scene, messages[third].uuid, messages[end].uuid)
        except InputError:
            continue
    return Plan("snip", reason="no range may go")


STAGES: Mapping[str, Callable[[StageRun], Plan]] = {
    "budget": lambda run: ToolBudget(ToolBudgetSettings(2_000, 10_000, 200)).plan(run.scene),
    "read-dedup": lambda run: ReadDedup(min_chars=200).plan(run.scene),
    "media": lambda run: Media(MediaSettings("all")).plan(run.scene),
    "snip": snipped,
    "micro": lambda run: Microcompact().plan(run.scene),
    "collapse": lambda run: Collapse().drain(run.scene, 10**9),
}


def staged(source: Path, work: Path, stage: str, in_place: bool) -> Outcome:
    """Everything that needs no client."""
    outcome = Outcome(source, stage, keeps_rows=True)
    file = copied(source, work)
    before, state = file.read_bytes(), file.stat()
    foreseen: list[bytes] = []

    def choose(run: StageRun) -> list[Plan]:
        plan = STAGES[stage](run)
        foreseen.append(said(applied(run.scene, plan).view().messages))
        return [plan]

    def run_on(path: Path) -> StageResult:
        target = Target(work / "locks", None, in_place)
        return run_stages(session_file(path), stage, (), choose, target, FORCED)

    try:
        result = run_on(file)
    except FoldmarkError as error:
        outcome.faults.append(f"error: {error}")
        return outcome
    if not in_place and (file.read_bytes() != before or file.stat().st_mtime_ns != state.st_mtime_ns):
        outcome.faults.append("the source was touched")
    if not result.changed:
        outcome.known.append(f"nothing to do: {result.reason}")
        return outcome
    outcome.compacted = output = Path(result.output)
    written = output.read_bytes()
    with opened(session_file(output)) as session:
        if without_session(said(session.messages)) != without_session(foreseen[0]):
            outcome.faults.append("the result is not what was foreseen")
    if stage != "snip" and (run_on(output).changed or output.read_bytes() != written):
        outcome.faults.append("a second run changed something")
    outcome.faults += undone(file, output, before, written, work)
    return outcome


def said(messages: Sequence[Message]) -> bytes:
    """What is sent, system messages as the user's: a new session has no others."""
    as_users = [replace(m, role="user") if m.role == "system" and m.kind != "attachment" else m for m in messages]
    return msgspec.json.encode(api_messages(as_users))


def without_session(text: bytes) -> bytes:
    """The folder of a store bears the name of its session, which what is decided has a part in."""
    return re.sub(rb"[0-9a-f-]{36}/tool-results", b"tool-results", text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the comparison; the exit status is 1 when anything is not as promised."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[REAL], metavar="PART")
    parser.add_argument("--shared", type=Path, required=True, help="not in this repository: see above")
    parser.add_argument("--clients", nargs="*", default=["new", "old"])
    parser.add_argument("--stages", nargs="+", choices=[*STAGES], default=[*STAGES])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--in-place", action="store_true")
    parser.add_argument("--cache", type=Path, help="answers of the newest client to the sources")
    given = parser.parse_args(arguments)
    flat = comparer(given.shared)
    sources = [p for p in transcripts(given.shared, given.only) if answer(given.shared, p, "new", given.cache)["ok"]]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.jobs) as pool:
        pairs = [(source, stage) for source in sources for stage in given.stages]
        outcomes = [*pool.map(lambda pair: staged(pair[0], Path(folder), pair[1], given.in_place), pairs)]
        resumed_by(given.clients, outcomes, given.shared, flat, given.in_place, pool)
    return told(outcomes, given.clients, given.shared)


if __name__ == "__main__":
    sys.exit(main())
