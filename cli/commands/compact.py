"""`foldmark compact`: shorter sessions that the client resumes."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import click

from cli import options, resources, ui
from cli.batched import batched
from cli.errors import report_one
from cli.resources import Writer
from cli.written import show_ways
from core.context.tokens.window import Measuring
from core.report.words import saved
from core.service.automatic import Guards
from core.service.compact import WAYS, CompactResult, compact
from core.service.from_settings import choices_of
from core.service.job import Choices, How
from core.service.operation import DRY_RUN, WRITTEN_BEFORE, Target
from core.service.session import CLAUDE_CODE
from core.service.stages import StageSettings
from core.summarizers import AUTO, SUMMARIZERS
from core.summarizers.base import Summarizer
from core.transcript.projects import SessionFile


@click.command()
@options.sessions_argument
@click.option(
    "--how",
    type=click.Choice(["auto", *(way for way in WAYS if way != "auto")]),
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
@click.option("--idle", "idle_s", type=options.Span(), help="Only sessions not written to for this long (50m, 3h, 2d).")
@click.option("--markdown", is_flag=True, help="Of other clients' transcripts: Markdown instead of Messages JSON.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, help="How many at a time.")
@options.pick_option
@options.json_lines_option
@click.pass_context
def command(
    ctx: click.Context,
    sessions: tuple[str, ...],
    all_sessions: bool,
    how: How | None,
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
    how = how or ("partial" if up_to or since else "auto")
    if (how == "partial") != bool(up_to) ^ bool(since) or (up_to and since):
        raise click.UsageError("partial takes one of --up-to and --from, and no other way takes any", ctx)
    if how == "micro" and not (keep_tokens is None and not (summarizer or instructions or model or batch)):
        raise click.UsageError("micro writes no summary: --keep, --instructions and --summarizer are for full", ctx)
    if batch and (target.dry_run or jobs > 1 or summarizer not in (None, "anthropic")):
        raise click.UsageError("--batch is for the summariser anthropic, without --jobs and --dry-run", ctx)
    if how == "partial" and keep_tokens is not None:
        raise click.UsageError("--keep is not for partial: what stays is named by --up-to or --from", ctx)
    if how not in ("auto", "micro") and force:
        raise click.UsageError("--force is for --how micro", ctx)
    settings = options.settings(keep_tokens=keep_tokens, summarizer=summarizer)
    target = replace(target, markdown=markdown)
    idle_since = None if idle_s is None else time.time() - idle_s
    by_timer = if_over_tokens is not None or idle_s is not None
    guards = Guards(if_over_tokens, idle_since, options.state_dir() / "failures")
    beside = not (target.out_dir or target.dry_run)
    files = options.chosen(ctx, sessions, all_sessions, settings.claude_dir, pick, writes_beside=beside)
    known = StageSettings(Measuring.of(settings), datetime.now(UTC), force)
    usual = choices_of(settings, Path.home(), target, known)
    choices = replace(
        usual,
        how=how,
        options=replace(usual.options, instructions=instructions, up_to=up_to, since=since),
        notes=None if summarizer else usual.notes,  # who says who writes the summary wants one
        guards=guards,
    )
    # A dry run asks no model: it would cost what the run costs.
    writer = Writer(
        resources.access(settings, model), "extractive" if target.dry_run else settings.summarizer, not no_fallback
    )
    work = [_OneFile(file, writer, choices) for file in files]
    outcomes = batched(work, writer, options.state_dir() / "batches") if batch else _outcomes(work, jobs)
    return _told(work, outcomes, by_timer, as_json)


def _told(
    work: Sequence[_OneFile],
    outcomes: Iterable[tuple[_OneFile, CompactResult | Exception]],
    by_timer: bool,
    as_json: bool,
) -> int:
    """Say what came of each session, as it comes; the exit code."""
    failed, done = 0, list[CompactResult]()
    with ui.progress("compacting", len(work)) as step:
        for job, outcome in outcomes:
            step(job.file.path.name)
            failed += isinstance(outcome, Exception)
            if isinstance(outcome, Exception):
                if len(work) == 1:
                    raise outcome
                report_one(job.file.path, outcome, as_json)
            elif as_json:
                ui.emit(outcome, one_line=len(work) > 1)
            else:
                done.append(outcome)
                if len(work) == 1 or not by_timer or _is_work(outcome):
                    _show(outcome, len(work) > 1)
    is_told = failed or not by_timer or sys.stdout.isatty() or any(map(_is_work, done))
    if len(work) > 1 and not as_json and is_told:
        _show_total(done, failed)
    return 1 if failed else 0


@dataclass(frozen=True, slots=True)
class _OneFile:
    """One transcript to compact, in this process or another."""

    file: SessionFile
    writer: Writer
    choices: Choices

    def __call__(self, summarizer: Summarizer | None = None) -> CompactResult | Exception:
        try:
            return compact(self.file, summarizer or self.writer.summarizer(), self.choices)
        except Exception as error:  # noqa: BLE001 (what is wrong with one session must not end the others)
            return error


def _outcomes(work: list[_OneFile], jobs: int) -> Iterator[tuple[_OneFile, CompactResult | Exception]]:
    if jobs == 1 or len(work) == 1:
        for job in work:
            yield job, job()
        return
    with ProcessPoolExecutor(min(jobs, len(work))) as pool:
        yield from zip(work, pool.map(_OneFile.__call__, work), strict=True)


def _show(result: CompactResult, many: bool) -> None:
    name = result.source.title or result.source.id
    if many:
        ui.echo(f"{Path(result.source.path).name} {ui.quoted(name)}: {_in_short(result)}")
        return
    ui.echo(ui.title(name))
    if result.how == "none":
        ui.echo(f"nothing written: {result.reason}")
        return
    ui.echo()
    for when, tokens in (("before", result.tokens_before), ("after", result.tokens_after)):
        ui.echo(f"{when:6}  {ui.meter(tokens, result.tokens_before, beside=15)}  {ui.tokens(tokens)}")
    kept, went = f"{ui.count(result.loss.kept, 'message')} kept word for word", result.loss.reachable
    match result.how:
        case "micro":
            what = "all messages stay, large and old tool results are shortened and stored whole"
        case "memory":
            what = f"{kept}, the notes stand for {went}, which are stored"
        case _:
            what = f"{kept}, {went} summarised and stored"
    ui.echo(f"\n{saved(result.tokens_before, result.tokens_after)}; {what}")
    for verdict in result.verdicts:
        ui.echo(f"on the prompt cache: {verdict}")
    if result.restored:
        ui.echo(f"put back: {ui.plain(', '.join(result.restored))}")
    for remark in result.remarks:
        ui.echo(f"note: {ui.plain(remark)}")
    if result.changed or result.reason == WRITTEN_BEFORE:
        said = "written" if result.changed else f"nothing written: {WRITTEN_BEFORE}"
        show_ways(result.output, result.session_id, result.source.format, said)
    else:
        ui.echo(_not_done(result))


def _is_work(result: CompactResult) -> bool:
    """Whether something was written, or would be."""
    return result.changed or (result.how != "none" and result.reason == DRY_RUN)


def _in_short(result: CompactResult) -> str:
    if result.how == "none":
        return f"left alone: {result.reason}"
    tokens = saved(result.tokens_before, result.tokens_after)
    if result.changed:
        return f"{tokens}, written: {result.output}"
    return f"{tokens}, {_not_done(result)}"


def _not_done(result: CompactResult) -> str:
    """Say why nothing was written, and which file it is about."""
    if result.reason == DRY_RUN:
        return f"dry run: would {'append to' if result.output == result.source.path else 'write'} {result.output}"
    return f"nothing written: {result.reason}: {result.output}"


def _show_total(done: list[CompactResult], failed: int) -> None:
    """Sum up many sessions, and say how to go on with one of them."""
    worked = [r for r in done if _is_work(r)]
    tokens = saved(sum(r.tokens_before for r in worked), sum(r.tokens_after for r in worked))
    said = f"{tokens} in {len(worked)}" if worked else "nothing to do"
    ui.echo(f"{len(done) + failed} sessions: {said}; {len(done) - len(worked)} left alone, {failed} failed")
    if any(r.changed and r.source.format == CLAUDE_CODE for r in done):
        ui.echo("resume one with:  claude --resume FILE\ntake one back with:  foldmark undo FILE")
