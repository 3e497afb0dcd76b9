"""`foldmark simulate`: what a session would have cost under each policy."""

from __future__ import annotations

from collections.abc import Sequence

import click

from cli import options, process, ui
from core.context.tokens.cost import CacheLife
from core.context.tokens.window import Measuring
from core.defaults import LEAST_WINDOW_TOKENS
from core.service.session import opened
from core.service.simulate import CLIENT, PolicyResult, SimulationOptions, simulate
from core.stages.verdict import REREAD_TOKENS

_POLICIES = {
    "none": "nothing but compactions",
    "keep-3": "above 100k, all results but the 3 newest go",
    "keep-3-at-least-20k": "as keep-3, 20k or more at a time",
    "budget": "large results are stored, with a preview",
    "read-dedup": "a file that was read again stands once",
    "snip": "ranges go that foldmark snip --suggest proposes",
    "microcompact": "old results go where that pays",
    "microcompact-public": "as microcompact, by the API's public edits",
    "microcompact-pinned": "as microcompact, by edits that stay in place",
    "collapse": "old spans fold into a line each",
    "all": "all of these stages, one after the other",
    "client": "what the client did, by what was charged",
}
"""By the names that `--json` has, too."""
_EXPLAINED = "\b\nPolicies:\n" + "\n".join(f"  {name:19}  {what}" for name, what in _POLICIES.items())
_WORTH = 0.01
"""Of the cost: less than this is within what a replay can tell."""


@click.command(epilog=_EXPLAINED)
@click.argument("session", type=options.SessionName())
@options.pick_option
@click.option("--model", "model_id", default="", help="Prices and window of this model instead of the session's.")
@click.option("--window", "window_tokens", type=options.TokenCount(LEAST_WINDOW_TOKENS), help="Size of the window.")
@click.option("--ttl", type=click.Choice(["5m", "1h"]), help="How long the cache lives; else as the session paid for.")
@click.option(
    "--reread", "reread_tokens", type=options.TokenCount(), multiple=True,
    default=(REREAD_TOKENS,), help="Tokens read again after a compaction (20,000); may be given several times.",
)  # fmt: skip
@click.option(
    "--repeat", "repeats", type=options.Count(1, 20), default=1, help="Do the work so many times, 20 at most."
)
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    session: str,
    pick: str,
    model_id: str,
    window_tokens: int | None,
    ttl: CacheLife | None,
    reread_tokens: tuple[int, ...],
    repeats: int,
    as_json: bool,
) -> None:
    """Replay all requests of SESSION, as if it had never been compacted, under each policy.

    Compacts at the automatic threshold, to 30,000 tokens and what is read again. Nothing is written or sent.
    """
    settings = process.settings(window_tokens=window_tokens)
    chosen = SimulationOptions(model_id, ttl, reread_tokens, repeats)
    file = options.find(ctx, session, settings.claude_dir, pick)
    steps = (len(_POLICIES) - 1) * len(reread_tokens)
    with opened(file, whole=True, measuring=Measuring.of(settings)) as found, ui.progress("replaying", steps) as step:
        report = simulate(found, chosen, step)
    if as_json:
        ui.emit(report)
        return
    if report.session.title:
        ui.echo(ui.title(report.session.title))
    times = f", {report.repeats} times over" if report.repeats > 1 else ""
    model = report.model if report.results[0].usd is not None else f"{report.model or 'unknown model'} (prices unknown)"
    ui.echo(f"{report.session.id}  {report.requests} requests{times}  {model}, cache for {report.cache_life}")
    ui.echo(f"compacts at {ui.tokens(report.auto_threshold_tokens)}; fixed part {ui.tokens(report.overhead_tokens)}")
    for tokens in reread_tokens:
        ui.echo(f"\nWith {ui.tokens(tokens)} tokens read again after a compaction")
        _print([r for r in report.results if r.reread_tokens == tokens])


def _print(results: Sequence[PolicyResult]) -> None:
    """Print the table, and the costs as bars."""
    figures = ("COMPACTIONS", "EDITS", "READ", "WRITTEN", "HITS", "IN TOKENS", "COST", "CHANGE")
    rows = [
        (
            r.policy,
            str(r.compactions),
            str(r.edits),
            ui.tokens(r.usage.cache_read_tokens),
            ui.tokens(r.usage.cache_creation_tokens),
            f"{r.cache_hit_share:.0%}",
            ui.tokens(r.input_equivalents),
            "-" if r.usd is None else f"${r.usd:.2f}",
            f"{r.change:+.1%}",
        )
        for r in results
    ]
    drops = ("EDITS", "WRITTEN", "READ", "IN TOKENS", "HITS", "COMPACTIONS", "COST")
    ui.print_table(("POLICY", *figures), rows, figures, drops=drops, shrinks="POLICY", least=len("microcompact-pinned"))
    most = max(r.input_equivalents for r in results)
    width = max(len(r.policy) for r in results)
    ui.echo()
    for r in results:
        ui.echo(f"{r.policy:{width}}  {ui.meter(r.input_equivalents, most, width + 10)} {r.change:+.1%}")
    best = min((r for r in results if r.policy != CLIENT), key=lambda r: r.input_equivalents)
    if best.change > -_WORTH:
        ui.echo(f"\nno policy costs at least {_WORTH:.0%} less than none")
    else:
        ui.echo(f"\n{best.policy} costs least, {-best.change:.1%} less than none: {_POLICIES[best.policy]}")
    if charged := [r for r in results if r.policy == CLIENT and r.change < best.change - _WORTH]:
        ui.echo(f"what the client did was charged still less: {charged[0].change:+.1%}")
