"""`foldmark compact`: shorter sessions that the client resumes."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click

from cli import options, process, resources, ui
from cli.errors import report_one, tell
from cli.resources import Writer
from cli.written import show_commands, show_outcome
from core.context.tokens.window import Measuring
from core.report.words import saved, whereabouts
from core.service.arguments import Arguments
from core.service.automatic import Guards
from core.service.batch import Done, compact_batched, compact_each
from core.service.compact import WAYS, CompactResult
from core.service.from_settings import choices_of
from core.service.job import Choices, How
from core.service.operation import DRY_RUN, Target
from core.service.session import CLAUDE_CODE
from core.service.stages import StageSettings
from core.summarizers import AUTO, SUMMARIZERS
from core.transcript.locate import no_sessions
from core.transcript.projects import SessionFile


@click.command()
@options.sessions_argument
@click.option(
    "--how",
    type=click.Choice([*WAYS]),
    default="auto",
    help="full: a summary stands for old history.  memory: the notes of the session do.  partial: a summary stands for "
    "one part.  micro: only large and old tool results give way.  auto (the default): what is of use.",
)
@click.option("--up-to", default="", metavar="ID", help="partial: summarise what is before this message.")
@click.option("--from", "since", default="", metavar="ID", help="partial: summarise this message and what follows.")
@click.option("--force", is_flag=True, help="micro: also where rewriting the cache costs more than it saves.")
@click.option("--keep", "keep_tokens", type=options.TokenCount(), help="Kept word for word at the end.")
@click.option("--instructions", default="", metavar="TEXT", help="What the summary should pay attention to.")
@click.option(
    "--summarizer",
    type=click.Choice([AUTO, *SUMMARIZERS]),
    help="Who writes the summary.  extractive (the default): nothing leaves the machine.  auto: a model where there is "
    "a key or the claude program.",
)
@click.option("--model", default="", metavar="ID", help="The model that writes the summary; else the cheapest.")
@click.option("--no-fallback", is_flag=True, help="An error where the model fails, no offline summary.")
@click.option(
    "--batch", is_flag=True, help="Ask for all summaries in one batch, at half the price; waits up to an hour."
)
@options.target_options
@click.option("--if-over", "if_over_tokens", type=options.TokenCount(), help="Only contexts larger than this.")
@click.option(
    "--idle", "idle_s", type=options.Span(), help="Only sessions and files not written to for this long (50m, 3h, 2d)."
)
@click.option("--markdown", is_flag=True, help="Of other clients' transcripts: Markdown instead of Messages JSON.")
@click.option("--jobs", type=options.Count(1), default=1, help="How many at a time.")
@options.pick_option
@options.json_lines_option
@click.pass_context
def command(
    ctx: click.Context,
    sessions: tuple[str, ...],
    all_sessions: bool,
    how: How,
    up_to: str,
    since: str,
    force: bool,
    keep_tokens: int | None,
    instructions: str,
    summarizer: str | None,
    model: str,
    no_fallback: bool,
    batch: bool,
    target: Target,
    if_over_tokens: int | None,
    idle_s: float | None,
    markdown: bool,
    jobs: int,
    pick: str,
    as_json: bool,
) -> int:
    """Compact SESSIONS (names, files, folders, patterns): old history becomes a summary, the newest part stays.

    The result is a new session beside the old one, which stays as it is.  Everything taken out is stored beside
    the new session; foldmark search and foldmark output find it, foldmark undo takes the compaction back.

    With --if-over or --idle, as for a timer, it says nothing of sessions that are left alone.
    """
    if batch and (target.dry_run or jobs > 1 or how in ("memory", "micro") or summarizer not in (None, "anthropic")):
        raise click.UsageError("--batch is for summaries by anthropic, without --jobs and --dry-run", ctx)
    settings = process.settings(summarizer="anthropic" if batch else summarizer)
    resources.refuse_without_model(ctx, settings.summarizer, {"--model": model, "--no-fallback": no_fallback})
    usual = choices_of(
        settings,
        Path.home(),
        replace(target, markdown=markdown),
        StageSettings(Measuring.of(settings), datetime.now(UTC)),
    )
    asked = Arguments(
        how,
        up_to,
        since,
        keep_tokens,
        instructions,
        summarizer or "",
        model=model,
        no_fallback=no_fallback,
        force=force,
    )
    guards = Guards(if_over_tokens, None if idle_s is None else time.time() - idle_s, process.state_dir() / "failures")
    choices = replace(asked.over(usual), guards=guards)
    beside = not (target.out_dir or target.dry_run)
    files = options.chosen(ctx, sessions, all_sessions, settings.claude_dir, pick, writes_beside=beside)
    writer = Writer(resources.access(settings, model), settings.summarizer, not no_fallback, target.dry_run)
    by_timer = if_over_tokens is not None or idle_s is not None
    if not (files or by_timer or as_json):
        tell(no_sessions(settings.claude_dir))
    done = _batched(files, choices, writer) if batch else compact_each(files, writer.summarizer, choices, jobs)
    return _told(done, len(files), by_timer, as_json)


def _batched(files: Sequence[SessionFile], choices: Choices, writer: Writer) -> Iterator[Done]:
    from core.summarizers.batch import Waiting

    endpoint, given = writer.access.endpoint(), writer.access.resources(writer.fallback)
    waiting = Waiting(time.monotonic, time.sleep)
    return compact_batched(files, choices, endpoint, given, process.state_dir() / "batches", waiting)


def _told(outcomes: Iterable[Done], total: int, by_timer: bool, as_json: bool) -> int:
    """Say what came of each session, as it comes; the exit code."""
    failed, done = 0, list[CompactResult]()
    with ui.progress("compacting", total) as step:
        for file, outcome in outcomes:
            step(file.path.name)
            failed += isinstance(outcome, Exception)
            if isinstance(outcome, Exception):
                if total == 1:
                    raise outcome
                report_one(file.path, outcome, as_json)
            elif as_json:
                ui.emit(outcome, one_line=total > 1)
            else:
                done.append(outcome)
                if total == 1 or not by_timer or _is_work(outcome):
                    _show(outcome, total > 1)
    is_told = failed or not by_timer or sys.stdout.isatty() or any(map(_is_work, done))
    if total > 1 and not as_json and is_told:
        _show_total(done, failed)
    return 1 if failed else 0


def _show(result: CompactResult, many: bool) -> None:
    name = result.session.title or result.session.id
    if many:
        ui.echo(f"{Path(result.session.path).name} {ui.quoted(name)}: {_in_short(result)}")
        return
    ui.echo(ui.title(name))
    if result.how == "none":
        ui.echo(f"nothing written: {result.reason}")
        return
    ui.echo()
    for when, tokens in (("before", result.tokens_before), ("after", result.tokens_after)):
        ui.echo(f"{when:6}  {ui.meter(tokens, result.tokens_before, beside=15)}  {ui.tokens(tokens)}")
    what = whereabouts(result.how, result.loss.kept, result.loss.reachable)
    instead = " (--how full writes a summary)" if result.how == "memory" else ""
    ui.echo(f"\n{saved(result.tokens_before, result.tokens_after)}; {what}{instead}")
    for verdict in result.verdicts:
        ui.echo(f"on the prompt cache: {verdict}")
    if result.restored:
        ui.echo(f"put back: {ui.plain(', '.join(result.restored))}")
    show_outcome(result)


def _is_work(result: CompactResult) -> bool:
    """Whether something was written, or would be."""
    return result.changed or (result.how != "none" and result.reason == DRY_RUN)


def _in_short(result: CompactResult) -> str:
    if result.how == "none":
        return f"left alone: {result.reason}"
    tokens = saved(result.tokens_before, result.tokens_after)
    return f"{tokens}, {result.standing}"


def _show_total(done: list[CompactResult], failed: int) -> None:
    """Sum up many sessions, and say how to go on with one of them."""
    worked = [r for r in done if _is_work(r)]
    tokens = saved(sum(r.tokens_before for r in worked), sum(r.tokens_after for r in worked))
    said = f"{tokens} in {len(worked)}" if worked else "nothing to do"
    ui.echo(f"{len(done) + failed} sessions: {said}; {len(done) - len(worked)} left alone, {failed} failed")
    written = [r for r in done if r.changed]
    if len(written) == 1:
        show_commands(written[0].resume, written[0].undo)
    elif resumable := [r for r in written if r.session.format == CLAUDE_CODE]:
        ui.echo("resume one with:  claude --resume NAME\ntake one back with:  foldmark undo NAME")
        by_id = all(r.resume.endswith(r.output_id) for r in resumable)
        ui.echo(f"NAME is one of the files written{', without its folder and .jsonl' if by_id else ''}")
