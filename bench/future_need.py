"""How much of what real sessions needed next the offline summary holds, at the client's own compact boundaries.

    python -m bench.future_need --shared DIR [--budget 12400] [--keep DIR]

DIR, which is not in this repository, holds tools/future_need.py and real/claude*.jsonl.  The tool writes what was
summarised at each boundary, this writes the summaries beside it, the tool scores them.  `--keep` leaves both.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.load import messages_in
from core.summarizers.base import SummaryRequest
from core.summarizers.extractive import Extractive


def main() -> None:
    """Dumps, summarises, scores."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--shared", type=Path, required=True, help="the folder with tools/ and real/")
    options.add_argument("--budget", type=int, default=12_400, help="characters of a summary")
    options.add_argument("--keep", type=Path, help="where to leave inputs and summaries")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        files = sorted((given.shared / "real").glob("claude*.jsonl"))
        tool = [sys.executable, str(given.shared / "tools" / "future_need.py")]
        subprocess.run([*tool, "--dump", str(folder), *map(str, files)], check=True, stdout=subprocess.DEVNULL)
        for before in sorted(folder.glob("*.before.jsonl")):
            summary = Extractive().summarize(
                SummaryRequest(messages_in(before), given.budget, cwd="/w", transcript="/t.jsonl")
            )
            Path(str(before).replace(".before.jsonl", ".summary.txt")).write_text(summary.text, encoding="utf-8")
        subprocess.run([*tool, "--with", str(folder), *map(str, files)], check=True)


if __name__ == "__main__":
    main()
