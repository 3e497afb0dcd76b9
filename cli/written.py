"""What is said of a result: where it is, and how to go on from it or back."""

from __future__ import annotations

from cli import ui
from core.service.operation import Outcome, resume_command, undo_command


def show_outcome(result: Outcome) -> None:
    """Print what a person should know, where a result is or would be, or why there is none, and the ways."""
    for warning in result.warnings:
        ui.echo(f"note: {ui.plain(warning)}")
    ui.echo(result.standing)
    show_commands(result.resume, result.undo)


def show_ways(output: str, output_id: str, source_format: str) -> None:
    """Print where something is that was written, and the ways."""
    ui.echo(f"written: {output}")
    show_commands(resume_command(output, output_id, source_format), undo_command(output, output_id, source_format))


def show_commands(resume: str, undo: str) -> None:
    """Print the ways on and back, as far as there are such."""
    if resume:
        ui.echo(f"resume with:  {resume}")
    if undo:
        ui.echo(f"take back with:  {undo}")
