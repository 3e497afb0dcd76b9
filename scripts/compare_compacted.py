"""Compacts every sample transcript and puts the results before the real client.

    python -m scripts.compare_compacted --shared DIR [--clients new old 2.0.76 1.0.128] [--keep TOKENS]
                                         [--in-place] [--micro | --up-to | --from]

For every main transcript below DIR/real and DIR/corpus that the newest client resumes: `foldmark compact` writes a new
session (or appends to a copy); the source must keep its bytes and its mtime, a second run must change nothing, each
client must resume the result without compacting it again and send exactly what `foldmark view` says, and `foldmark
undo` must give back what was there, byte for byte.  A small `--keep` makes something go in short samples too.
`--up-to` and `--from` compact one half only, cut at the message in the middle.  DIR is not in this repository: it is as
for `compare_client`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.context.dialect import NEWEST
from core.context.rounds import cut_points
from core.context.view import messages_of
from core.transcript.chain import load
from scripts.compare_client import DIALECTS, Comparison, Flat, answer, comparer, differing, transcripts, view

ROOT = Path(__file__).parents[1]
ASKS_FOR_TITLES = {"1.0.128"}
"""Clients whose requests for a title the scripted API takes for compactions: one for each end of a chain in the file
that has no title yet, on any session.  In place these are the old ends; a new session brings its title along."""


MIDDLE = "(middle)"
REFUSALS = ("in the middle of a turn", "a tool is still at work", "no message of the active context")
"""Why a transcript cannot be cut there, or is too short to have a middle."""


@dataclass
class Outcome:
    """What became of one transcript."""

    source: Path
    how: str = ""
    """By what, where there is a choice."""
    compacted: Path | None = None
    faults: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    """Differences that docs/client-differences.md explains."""
    keeps_rows: bool = False
    """Its first rows are those of the source: each version of the client goes on sending them in its own way."""


def foldmark(work: Path, *arguments: str) -> dict[str, Any]:
    """Runs the command line with a scratch home; the JSON that it prints."""
    env = {**os.environ, "HOME": str(work), "CLAUDE_CONFIG_DIR": str(work / "claude")}
    command = [sys.executable, str(ROOT / "foldmark.py"), *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    return dict(json.loads(done.stdout))


def copied(source: Path, work: Path) -> Path:
    """A copy of a transcript, with what is stored beside it, in a folder of its own."""
    file = Path(tempfile.mkdtemp(dir=work)) / source.name
    shutil.copy2(source, file)
    if source.with_suffix("").is_dir():
        shutil.copytree(source.with_suffix(""), file.with_suffix(""))
    return file


def compacted(source: Path, work: Path, options: Sequence[str]) -> Outcome:
    """Everything that needs no client."""
    in_place = "--in-place" in options
    outcome = Outcome(source)
    file = copied(source, work)
    before, state = file.read_bytes(), file.stat()
    options = [middle(file) if option == MIDDLE else option for option in options]
    result = foldmark(work, "compact", str(file), *options)
    if "error" in result:
        message = result["error"]["message"]
        outcome.faults += [] if any(refusal in message for refusal in REFUSALS) else [f"error: {message}"]
        return outcome
    if not in_place and (file.read_bytes() != before or file.stat().st_mtime_ns != state.st_mtime_ns):
        outcome.faults.append("the source was touched")
    if not result["changed"]:
        return outcome
    outcome.compacted = output = Path(result["output"])
    written = output.read_bytes()
    if foldmark(work, "compact", str(output), *options).get("changed") or output.read_bytes() != written:
        outcome.faults.append("a second run changed something")
    outcome.faults += undone(file, output, before, written, work)
    return outcome


def middle(file: Path) -> str:
    """The message at the cut in the middle of the active view."""
    log, chain = load(file)
    with log:
        messages = messages_of(log, chain)
        points = cut_points(messages)[:-1]
        return messages[points[len(points) // 2]].uuid if points else "none"


def undone(file: Path, output: Path, before: bytes, written: bytes, work: Path) -> Iterator[str]:
    """Takes the compaction back, looks, and puts the result there again for the clients."""
    foldmark(work, "undo", str(output))
    if file.read_bytes() != before:
        yield "undo did not give the bytes back"
    if output != file and (output.exists() or output.with_suffix("").exists()):
        yield "undo left something behind"
    output.write_bytes(written)


def ends_with_call(file: Path) -> bool:
    """Whether a call at the very end has no result yet: in place it stays, for a client that is about to write it."""
    log, chain = load(file)
    with log:
        return chain.leaf is not None and chain.leaf.type == "assistant" and bool(chain.leaf.tools)


def resumed(outcome: Outcome, client: str, shared: Path, flat: Flat, in_place: bool) -> list[str]:
    """What a client makes of the result, as faults."""
    assert outcome.compacted is not None
    sent = answer(shared, outcome.compacted, client, None)
    if not sent["ok"] and in_place and not answer(shared, outcome.source, client, None)["ok"]:
        outcome.known.append(f"{client} does not resume the source either")
        return []
    if not sent["ok"]:
        return [f"{client} does not resume it: {sent.get('output', '')[-100:]}"]
    faults = []
    if "compact" in sent["calls"] and not (in_place and client in ASKS_FOR_TITLES):
        faults.append(f"{client} compacts it again")
    dialects = {NEWEST, DIALECTS[client]} if outcome.keeps_rows or ends_with_call(outcome.compacted) else {NEWEST}
    found = (differing(flat(view(outcome.compacted, d)), flat(sent["messages"])) for d in dialects)
    comparisons = [Comparison(client, outcome.source, lines, False) for lines in found]
    nearest = min(comparisons, key=lambda each: ("unexplained" in each.reasons, len(each.lines)))
    if "unexplained" in nearest.reasons:
        faults.append(f"{client} sends something else: {len(nearest.lines)} lines, as {nearest.lines[0][:120]}")
    elif nearest.lines:
        outcome.known.append(f"{client}: {', '.join(nearest.reasons)}")
    return faults


def resumed_by(
    clients: Sequence[str], outcomes: Sequence[Outcome], shared: Path, flat: Flat, in_place: bool, pool: Executor
) -> None:
    """Has each client resume each result, and adds what is wrong."""
    pairs = [(outcome, client) for client in clients for outcome in outcomes if outcome.compacted]
    found = pool.map(lambda pair: resumed(pair[0], pair[1], shared, flat, in_place), pairs)
    for (outcome, _), faults in zip(pairs, found, strict=True):
        outcome.faults += faults


def told(outcomes: Sequence[Outcome], clients: Sequence[str], shared: Path) -> int:
    """Prints what is wrong, what is known, and the counts; the exit status."""
    for outcome in outcomes:
        name = " ".join(filter(None, (str(outcome.source.relative_to(shared)), outcome.how)))
        for line in (*outcome.faults, *(f"known: {k}" for k in outcome.known)):
            print(f"{name}: {line}")
    done = sum(o.compacted is not None for o in outcomes)
    wrong = sum(bool(o.faults) for o in outcomes)
    print(f"{len(outcomes)} transcripts: {done} written, {done * len(clients)} resumed, {wrong} not as promised")
    return 1 if wrong or not outcomes else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the comparison; the exit status is 1 when anything is not as promised."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="PART")
    parser.add_argument("--shared", type=Path, required=True, help="not in this repository: see above")
    parser.add_argument("--clients", nargs="+", default=["new", "old", "2.0.76", "1.0.128"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=int)
    parser.add_argument("--in-place", action="store_true")
    parser.add_argument("--micro", action="store_true", help="compact --how micro --force instead of a full compaction")
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--up-to", action="store_true", help="compact what is before the message in the middle")
    part.add_argument("--from", dest="since", action="store_true", help="compact that message and what follows")
    parser.add_argument("--cache", type=Path, help="answers of the newest client to the sources")
    given = parser.parse_args(arguments)
    flat = comparer(given.shared)
    chosen = ["--in-place"] * given.in_place + ["--how", "micro", "--force"] * given.micro
    chosen += ["--up-to", MIDDLE] * given.up_to + ["--from", MIDDLE] * given.since
    chosen += [] if given.keep is None else ["--keep", str(given.keep)]
    sources = [p for p in transcripts(given.shared, given.only) if answer(given.shared, p, "new", given.cache)["ok"]]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.jobs) as pool:
        work = Path(folder)
        outcomes = list(pool.map(lambda p: compacted(p, work, chosen), sources))
        resumed_by(given.clients, outcomes, given.shared, flat, given.in_place, pool)
    return told(outcomes, given.clients, given.shared)


if __name__ == "__main__":
    sys.exit(main())
