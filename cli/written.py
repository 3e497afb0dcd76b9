"""What is said of a result: where it is, and how to go on from it or back."""

from __future__ import annotations

import shlex
from pathlib import Path

from cli import ui
from core.service.session import CLAUDE_CODE


def show_ways(output: str, session_id: str, source_format: str, claude_dir: Path, said: str = "written") -> None:
    """Print where a result is; the client resumes only what was made of its own transcripts."""
    ui.echo(f"{said}: {output}")
    is_known = source_format == CLAUDE_CODE and Path(output).is_relative_to(claude_dir / "projects")
    name = session_id if is_known else shlex.quote(output)
    if source_format == CLAUDE_CODE:
        ui.echo(f"resume with:  claude --resume {name}")
    ui.echo(f"take back with:  foldmark undo {name}")
