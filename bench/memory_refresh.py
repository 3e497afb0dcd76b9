"""What `foldmark memory refresh --all` takes over many sessions, the first time and when nothing changed.

    python -m bench.memory_refresh [--sessions 500] [--tokens 15000-60000]

The sessions are generated into a scratch home folder; the program is started as a timer would start it.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from core.testing import Transcript

ROOT = Path(__file__).resolve().parents[1]
_LINE = "2026-01-05 09:00:00 INFO worker.py: took job {n} from queue-{n} in 0.{n:03} s, {n} of 999 left\n"
_LINE_TOKENS = 40


def session(number: int, tokens: int, rng: random.Random) -> Transcript:
    """A session of about so many tokens: turns of reads, commands and edits."""
    made = Transcript(f"{number:08x}-0000-4000-8000-000000000000", cwd=f"/srv/app{number % 20}")
    made.prompt(f"Fix the queue of worker {number}. Never drop a job, and keep the log format.")
    written = turn = 0
    while written < tokens:
        turn += 1
        lines = rng.randint(5, 60)
        output = "".join(_LINE.format(n=rng.randrange(999)) for _ in range(lines))
        made.use("Read", output, file_path=f"/srv/app/worker_{turn % 9}.py")
        made.use("Edit", "updated", file_path=f"/srv/app/worker_{turn % 9}.py", old_string="a", new_string="def run():")
        made.use("Bash", "12 passed" if turn % 3 else "Exit code 1\nAssertionError: job lost", command="pytest -q")
        made.answer(f"The root cause of step {turn} was `take_job` in worker_{turn % 9}.py: it dropped retries.")
        made.prompt(f"Go on with step {turn + 1}.")
        written += lines * _LINE_TOKENS + 400
    return made.answer("Done.")


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Generates, runs twice, prints."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sessions", type=int, default=500)
    options.add_argument("--tokens", default="15000-60000", help="of each session, from-to")
    given = options.parse_args()
    low, _, high = given.tokens.partition("-")
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as home:
        for number in range(given.sessions):
            made = session(number, rng.randint(int(low), int(high or low)), rng)
            made.write(Path(home) / ".claude" / "projects" / f"-srv-app{number % 20}" / f"{made.session_id}.jsonl")
        size = sum(path.stat().st_size for path in Path(home).rglob("*.jsonl"))
        print(f"{given.sessions} sessions, {size / 1e6:.0f} MB")
        for run in ("first", "second", "third"):
            begin, before = time.monotonic(), _processor_s()
            done = subprocess.run(
                [sys.executable, "-m", "foldmark", "memory", "refresh", "--all"],
                env={**os.environ, "HOME": home},
                cwd=ROOT,
                check=True,
                capture_output=True,
                text=True,
            )
            took, worked, lines = time.monotonic() - begin, _processor_s() - before, len(done.stdout.splitlines())
            print(f"{run} run: {took:.2f} s, {worked:.2f} s of processor time, {lines} sessions updated")


if __name__ == "__main__":
    main()
