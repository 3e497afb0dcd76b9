"""Time and peak memory of whole processes, in pairs: each command next to the floor, in one run.

    python -m bench.processes [--size 500] [--runs 5] [--work DIR] [--peers]

The floor reads the same file line by line with `json.loads` and discards the result.  Figures are medians over the
runs; ratios are taken pair by pair, so that they hold when the machine's speed drifts.  `--peers` adds what other
tools need, where they are installed.  Nothing is asserted: the figures belong into docs/decisions/.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
FOLDMARK = [sys.executable, str(HERE.parent / "foldmark.py")]
FLOOR = "import json, sys\nfor line in open(sys.argv[1], 'rb'):\n    json.loads(line)\n"
BARE_CLICK = "import click\n@click.command()\n@click.version_option('1.0')\ndef main(): pass\nmain()\n"


@dataclass(frozen=True)
class Run:
    """One finished process: seconds of the wall clock and of the processor, peak memory in MiB."""

    wall_s: float
    cpu_s: float
    peak_mib: float


@dataclass(frozen=True)
class Case:
    """A command, what it is measured against, and what has to be undone between runs."""

    name: str
    command: Sequence[str]
    against: Sequence[str]
    clean: Callable[[], None] = lambda: None


def run(command: Sequence[str], env: dict[str, str]) -> Run:
    """Runs a command to its end, by the system's own accounting of it; raises when it fails."""
    started = time.perf_counter()
    with open(os.devnull, "wb") as null:
        process = subprocess.Popen(command, stdout=null, stderr=subprocess.PIPE, env=env)
        stderr = process.stderr.read() if process.stderr else b""
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {stderr.decode(errors='replace')[-500:]}")
    return Run(time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def measure(case: Case, runs: int, env: dict[str, str]) -> str:
    """One line: medians of both sides and the median ratio of their pairs."""
    pairs = []
    for counted in range(-1, runs):  # the first pair warms the page cache
        case.clean()
        pair = (run(case.command, env), run(case.against, env))
        if counted >= 0:
            pairs.append(pair)
    ours, floor = ([p[side] for p in pairs] for side in (0, 1))
    wall = statistics.median(a.wall_s / b.wall_s for a, b in pairs)
    return f"{case.name:44} {_figures(ours)}   against {_figures(floor)}   ratio {wall:.2f}"


def _figures(runs: Sequence[Run]) -> str:
    return f"{_median(runs, 'wall_s'):6.2f} s {_median(runs, 'cpu_s'):6.2f} cpu {_median(runs, 'peak_mib'):5.0f} MiB"


def _median(runs: Sequence[Run], figure: str) -> float:
    return float(statistics.median(getattr(r, figure) for r in runs))


def generated(path: Path, megabytes: int, compact_every: int) -> Path:
    """A synthetic transcript, made once."""
    if not path.exists():
        script = [sys.executable, "-m", "bench.generate", str(path.resolve()), "--mb", str(megabytes)]
        subprocess.run([*script, "--compact-every", str(compact_every)], check=True, cwd=HERE.parent)
    return path


def cases(work: Path, size: int) -> list[Case]:
    """What is promised: see the table in docs/decisions/."""
    with_boundaries = generated(work / f"s{size}.jsonl", size, 155_000)
    twice = generated(work / f"s{2 * size}.jsonl", 2 * size, 155_000)
    never = generated(work / f"n{size}.jsonl", size, 0)
    out = work / "out"

    def clean() -> None:
        shutil.rmtree(out, ignore_errors=True)

    def floor(path: Path) -> list[str]:
        return [sys.executable, "-c", FLOOR, str(path)]

    def compact(path: Path) -> list[str]:
        return [*FOLDMARK, "compact", str(path), "--out", str(out)]

    return [
        Case(
            "--version, against a bare click program",
            [*FOLDMARK, "--version"],
            [sys.executable, "-c", BARE_CLICK, "--version"],
        ),
        Case(
            f"context, {size} MB with boundaries", [*FOLDMARK, "context", str(with_boundaries)], floor(with_boundaries)
        ),
        Case(f"context, {2 * size} MB with boundaries", [*FOLDMARK, "context", str(twice)], floor(with_boundaries)),
        Case(f"compact, {size} MB with boundaries", compact(with_boundaries), floor(with_boundaries), clean),
        Case(f"compact, {2 * size} MB with boundaries", compact(twice), floor(with_boundaries), clean),
        Case(f"context, {size} MB never compacted", [*FOLDMARK, "context", str(never)], floor(never)),
        Case(f"compact, {size} MB never compacted", compact(never), floor(never), clean),
    ]


PEER_LISTING = "from claude_agent_sdk import list_sessions\nprint(len(list_sessions()))\n"


def listing(work: Path, env: dict[str, str]) -> list[Case]:
    """`sessions` over 1,000 sessions against claude-agent-sdk, where that is installed."""
    folder = Path(env["CLAUDE_CONFIG_DIR"]) / "projects" / "-home-dev-orders"
    sample = generated(work / "n1.jsonl", 1, 0).read_bytes()
    folder.mkdir(parents=True, exist_ok=True)
    for n in range(1000):
        path = folder / f"00000000-0000-4000-8000-{n:012d}.jsonl"
        if not path.exists():
            path.write_bytes(sample[: (n % 10 + 1) * len(sample) // 10])
    return [Case("sessions, 1,000 of them", [*FOLDMARK, "sessions", "--json"], [sys.executable, "-c", PEER_LISTING])]


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=500, help="megabytes of the large files")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument(
        "--work", type=Path, default=Path(tempfile.gettempdir()) / "foldmark-bench", help="where files are kept"
    )
    parser.add_argument("--peers", action="store_true", help="also against claude-agent-sdk")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    home = given.work / "home"
    env = {**os.environ, "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude"), "NO_COLOR": "1"}
    bare = run([sys.executable, "-c", "pass"], env)
    print(f"bare interpreter: {bare.wall_s:.3f} s, {bare.peak_mib:.0f} MiB")
    for case in cases(given.work, given.size) + (listing(given.work, env) if given.peers else []):
        print(measure(case, given.runs, env), flush=True)


if __name__ == "__main__":
    main()
