#!/usr/bin/env python3
"""Set up what a clone needs in `.venv`, then show or check the program.

    python3 scripts/dev.py demo     compact the bundled session, offline, and show what happened
    python3 scripts/dev.py test     run the tests (some minutes; files by name, --cov for coverage)
    python3 scripts/dev.py check    formatting, lint, types
    python3 scripts/dev.py docs     build the documentation into build/site; a broken link fails

The first run sets `.venv` up; the first of the last three adds what they need.  Runs with any Python 3 far enough to
say which one is needed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
DEMO = ROOT / "build" / "demo"
NEEDED = (3, 11)


def main(args: list[str]) -> int:
    """Run one of the tasks; further arguments go to the tool behind it."""
    tasks = {"demo": demo, "test": test, "check": check, "docs": docs}
    if not args or args[0] not in tasks:
        print(__doc__)
        return 0 if args[:1] in (["-h"], ["--help"]) else 2
    os.chdir(str(ROOT))
    return tasks[args[0]](args[1:])


def demo(_args: list[str]) -> int:
    """Show the sample session before and after; nothing outside build/demo is read or written."""
    prepare("")
    shutil.rmtree(str(DEMO), ignore_errors=True)
    DEMO.mkdir(parents=True)
    sample, out = "examples/session.jsonl", "build/demo/out"
    for step in (
        f"context {sample}",
        f"compact {sample} --out {out}",
        f"context {out}/*.jsonl",
    ):
        # No shell: the one file that stands for the pattern.
        arguments = [str(next(ROOT.glob(word))) if "*" in word else word for word in step.split()]
        print(f"\n$ foldmark {step}", flush=True)
        env = {**os.environ, "HOME": str(DEMO), "CLAUDE_CONFIG_DIR": str(DEMO / "claude")}
        if code := subprocess.call([str(PYTHON), "foldmark.py", *arguments], env=env):
            return code
    print(f"\nThe original is as it was; the smaller session is in {out}.")
    print("For sessions of your own:  pipx install .  (or: uv tool install .)  and then:  foldmark")
    return 0


def test(args: list[str]) -> int:
    """Run the tests, as many side by side as there are processors, but no more than four: each collects them all."""
    prepare("[dev]")
    if not args:
        print("running all tests: this takes some minutes", file=sys.stderr, flush=True)
    side_by_side = ["-n", "auto", "--maxprocesses", "4", "--dist", "worksteal"]
    return subprocess.call([str(PYTHON), "-m", "pytest", "-q", *side_by_side, *args])


def check(_args: list[str]) -> int:
    """Run the checks that need no test."""
    prepare("[dev]")
    for tool in (["ruff", "format", "--check", "."], ["ruff", "check", "."], ["mypy"]):
        print("$ " + " ".join(tool), flush=True)
        if code := subprocess.call([str(PYTHON), "-m", *tool]):
            return code
    return 0


def docs(_args: list[str]) -> int:
    """Build the documentation."""
    prepare("[dev]")
    command = [str(PYTHON), "-m", "mkdocs", "build", "--strict", "-f", "scripts/mkdocs.yml"]
    return subprocess.call(command, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})


def prepare(extra: str) -> None:
    """Install the program and what it needs, once for each state of pyproject.toml."""
    python = interpreter()
    stamp = VENV / "foldmark-installed"
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    have = stamp.read_text().split() if stamp.is_file() else []
    there = runs(PYTHON)
    if there and have[:1] == [wanted] and extra in ("", *have[1:]):
        return
    what = "adding what tests and checks need to .venv" if there and extra else "setting up .venv"
    print(f"{what} (once) ...", file=sys.stderr, flush=True)
    if not there:
        quiet([python, "-m", "venv", "--clear", str(VENV)], "this Python cannot make a venv: install its venv module")
    pip = [str(PYTHON), "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input", "install", "--editable"]
    quiet([*pip, "." + extra], "pip could not install what is needed: see above")
    stamp.write_text(wanted + " " + extra)


def interpreter() -> str:
    """Find a Python that is new enough: this one, or one on the path."""
    if sys.version_info[:2] >= NEEDED:
        return sys.executable
    names = [f"python3.{minor}" for minor in range(20, NEEDED[1] - 1, -1)]
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        sys.exit(f"error: Python {NEEDED[0]}.{NEEDED[1]} or newer is needed")
    return found


def runs(python: Path) -> bool:
    """Whether an interpreter is there and starts: a venv whose Python went away does not."""
    try:
        return subprocess.call([str(python), "-c", ""], stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def quiet(command: list[str], failure: str) -> None:
    """Run a step of the setup; show what it said only when it failed."""
    result = subprocess.run(
        command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if result.returncode:
        sys.stderr.buffer.write(result.stdout)
        sys.exit("error: " + failure)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
