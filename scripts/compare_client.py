"""Compares what Foldmark says that the model sees with what the real client sends when it resumes the same file.

    python -m scripts.compare_client --shared DIR [--clients new old] [--jobs 2] [--cache DIR] [--only PART ...]

For every main transcript below DIR/real and DIR/corpus whose path holds one of the PARTs (all, if there are none),
the client of each version is run on it offline (DIR/client/resume.py), and its messages are compared with the view
of the same version's dialect.  Transcripts that the client does not resume are left out.  One line is printed for
each file that differs, with the reason where it is known (docs/client-differences.md explains each), then the
counts.  The exit status is 1 when a difference has no known reason.

DIR is not in this repository.  Running the client needs root (it gets a network of its own) and an installed client
(DIR/client/README.md); answers in the cache need neither.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.context.dialect import NEWEST, OLDER, Dialect
from core.context.view import api_messages, messages_of
from core.model import JSON
from core.transcript.chain import load

DIALECTS = {"new": NEWEST, "old": OLDER, "2.0.76": OLDER, "1.0.128": OLDER}
NO_SESSION = ("requests.summary", "mcp-wire", "/hooks/", "/subagents/", "/agent-", "history.jsonl")
"""Parts of the paths of `.jsonl` files that hold no main transcript."""

REASONS: tuple[tuple[str, str], ...] = (
    ("tool-references", r"\[Tool references removed|<tool_reference>"),
    ("folded-reminder", r"\[scrubbed client text"),
    ("invented-notification", r'^\+\["user", "text", "<task-notification>'),
)
"""Names of known differences, and what the differing lines hold."""

Flat = Callable[[list[dict[str, JSON]]], list[Any]]


@dataclass(frozen=True)
class Comparison:
    """One transcript on one client."""

    client: str
    path: Path
    lines: tuple[str, ...]
    """What differs, as lines of a diff: "-" ours, "+" the client's."""
    default_differs: bool
    """Whether the view without naming the version differs too."""

    @property
    def reasons(self) -> list[str]:
        """The known reasons; "unexplained" where a line has none."""
        return sorted({reason(self, line) for line in self.lines})


def reason(comparison: Comparison, line: str) -> str:
    """Why a line differs."""
    if comparison.client != "new" and "reversed" in comparison.path.name:
        return "reversed-file"
    if any("[Tool use interrupted]" in other for other in comparison.lines):
        return "invented-interruption"
    kind, subject = json.loads(line[1:])[1:3]
    same = [other for other in comparison.lines if json.loads(other[1:])[1:3] == [kind, subject]]
    for name, pattern in REASONS:
        if any(re.search(pattern, other) for other in same):
            return name
    if len(same) != 2 or kind not in ("use", "result"):
        return "unexplained"
    moved = same[0][1:] == same[1][1:]
    return {("result", True): "equal-timestamps", ("use", False): "renewed-input"}.get((kind, moved), "unexplained")


def transcripts(shared: Path, parts: Sequence[str]) -> list[Path]:
    """The main transcripts, in a stable order."""
    found = [*(shared / "real").glob("claude-*.jsonl"), *(shared / "corpus").rglob("*.jsonl")]
    names = [p for p in sorted(found) if not any(part in str(p) for part in NO_SESSION)]
    return [p for p in names if not parts or any(part in str(p) for part in parts)]


def answer(shared: Path, path: Path, client: str, cache: Path | None) -> dict[str, Any]:
    """What the client sends on resume, as its runner prints it."""
    key = hashlib.sha256(path.read_bytes() + client.encode()).hexdigest()
    kept = cache / f"{key}.json" if cache else None
    if kept and kept.exists():
        return dict(json.loads(kept.read_text(encoding="utf-8")))
    runner = shared / "client"
    done = subprocess.run(
        [runner / "ns.sh", "python3", runner / "resume.py", path, "--client", client],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "DISABLE_AUTO_COMPACT": "1"},
    )
    if not done.stdout.strip():
        raise SystemExit(f"the client {client} cannot be run: {done.stderr.strip()[-300:]}")
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(done.stdout, encoding="utf-8")
    return dict(json.loads(done.stdout))


def comparer(shared: Path) -> Flat:
    """`flat` of DIR/client/compare.py: messages as a list of what they say to the model."""
    spec = importlib.util.spec_from_file_location("client_compare", shared / "client" / "compare.py")
    if spec is None or spec.loader is None or not (shared / "client" / "compare.py").exists():
        raise SystemExit(f"no client/compare.py in {shared}: name the folder with --shared")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    flat: Flat = module.flat
    return flat


def differing(ours: list[Any], theirs: list[Any]) -> tuple[str, ...]:
    """The lines of a diff, without its frame."""
    a, b = ([json.dumps(row, ensure_ascii=False) for row in rows] for rows in (ours, theirs))
    diff = difflib.unified_diff(a, b, n=0, lineterm="")
    return tuple(line for line in diff if line[:2] not in ("--", "++", "@@"))


def view(path: Path, dialect: Dialect) -> list[dict[str, JSON]]:
    """What `foldmark view PATH --json` gives as messages."""
    log, chain = load(path)
    with log:
        return api_messages(messages_of(log, chain, dialect), dialect)


def compared(path: Path, client: str, theirs: dict[str, Any], flat: Flat) -> Comparison | None:
    """The comparison; None when the client does not resume the file."""
    if not theirs["ok"]:
        return None
    sent = flat(theirs["messages"])
    lines = differing(flat(view(path, DIALECTS[client])), sent)
    return Comparison(client, path, lines, bool(differing(flat(view(path, NEWEST)), sent)))


def compare_all(
    shared: Path, clients: Iterable[str], parts: Sequence[str], cache: Path | None, jobs: int
) -> Iterator[Comparison]:
    """The comparisons of all transcripts that the clients resume."""
    flat = comparer(shared)
    pairs = [(path, client) for client in clients for path in transcripts(shared, parts)]
    with ThreadPoolExecutor(jobs) as pool:
        answers = pool.map(lambda pair: answer(shared, pair[0], pair[1], cache), pairs)
        for (path, client), theirs in zip(pairs, answers, strict=True):
            comparison = compared(path, client, theirs, flat)
            if comparison:
                yield comparison


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="PART")
    parser.add_argument("--shared", type=Path, required=True, help="not in this repository: see above")
    parser.add_argument("--clients", nargs="+", choices=sorted(DIALECTS), default=["new", "old"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cache", type=Path)
    options = parser.parse_args(arguments)

    done = list(compare_all(options.shared, options.clients, options.only, options.cache, options.jobs))
    for one in done:
        if one.lines:
            name = one.path.relative_to(options.shared)
            print(f"{one.client:8}{name}: {len(one.lines)} lines differ: {', '.join(one.reasons)}")
    wrong = [one for one in done if one.lines]
    unexplained = [one for one in wrong if "unexplained" in one.reasons]
    print(
        f"{len(done)} pairs: {len(done) - len(wrong)} the same, {len(wrong)} different, "
        f"{len(unexplained)} of them unexplained; "
        f"with the default dialect {sum(not one.default_differs for one in done)} the same"
    )
    return 1 if unexplained or not done else 0


if __name__ == "__main__":
    sys.exit(main())
