"""What is said of a result: where it is, and how to go on from it or back."""

from __future__ import annotations

from cli import ui
from core.service.operation import resume_command, undo_command


def show_ways(output: str, output_id: str, source_format: str, said: str = "written") -> None:
    """Print where a result is; the client resumes only what was made of its own transcripts."""
    ui.echo(f"{said}: {output}")
    if resume := resume_command(output, output_id, source_format):
        ui.echo(f"resume with:  {resume}")
    ui.echo(f"take back with:  {undo_command(output, output_id, source_format)}")
