"""Sessions on disk, compacted as the command line does it."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.compaction.full import Options
from core.model import JSON, Message
from core.service.automatic import NO_GUARDS, Guards
from core.service.compact import CompactResult, compact
from core.service.job import Choices
from core.service.operation import Target
from core.service.session import opened
from core.summarizers.extractive import Extractive
from core.testing import Transcript
from core.transcript.page import Body
from core.transcript.projects import session_file
from core.transcript.store import Store

SUMMARY_CHARS = 3_000
_FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") else None
"""In memory, where there is such: syncing to a disk is what hundreds of examples would wait for."""


@contextmanager
def on_disk(made: Transcript, newline: bool = True) -> Iterator[Path]:
    """The session in a client's folder of its own, which is gone afterwards."""
    folder = Path(tempfile.mkdtemp(dir=_FOLDER))
    try:
        path = made.write(folder / "projects" / "-srv-app" / f"{made.session_id}.jsonl")
        if not newline:
            path.write_bytes(made.data().removesuffix(b"\n"))
        yield path
    finally:
        shutil.rmtree(folder)


def compacted(
    path: Path,
    keep_tokens: int = 0,
    *,
    out_dir: Path | None = None,
    in_place: bool = False,
    dry_run: bool = False,
    markdown: bool = False,
    guards: Guards = NO_GUARDS,
    instructions: str = "",
) -> CompactResult:
    """Compact a transcript, offline."""
    target = Target(path.parent.parent / "locks", out_dir, in_place, dry_run, markdown)
    options = Options(keep_tokens, SUMMARY_CHARS, instructions)
    return compact(session_file(path), Extractive(), Choices(options, target, guards=guards))


def messages(path: Path | str) -> tuple[Message, ...]:
    """What a client would send for a transcript."""
    with opened(session_file(Path(path))) as session:
        return session.messages


def rows(path: Path | str) -> list[dict[str, JSON]]:
    """The rows of a transcript."""
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def stored(store: Store, ident: str) -> Body | None:
    """The stored body of that id; None where there is none."""
    return next((body for body in store.bodies() if body.id == ident), None)
