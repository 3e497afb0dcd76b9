"""`foldmark doctor`: is everything in place."""

from __future__ import annotations

import click

from cli import options, process, ui
from core.errors import SettingsError
from core.service.doctor import doctor
from core.service.setup import HostState

_MARKS = {"ok": ("✓", "green"), "note": ("·", "yellow"), "problem": ("✗", "red")}


@click.command()
@options.json_option
def command(as_json: bool) -> int:
    """Show what Foldmark works with: folders, open sessions, the model table, each setting and where it was set.

    The exit code is 1 when there is a problem.
    """
    faults: list[SettingsError] = []
    settings = process.settings(faults)
    report = doctor(settings, [process.state_dir()], process.machine(), process.launch(), faults)
    if as_json:
        ui.emit(report)
        return 0 if report.ok else 1
    ui.echo(f"foldmark {report.version}, Python {report.python}\n")
    for check in report.checks:
        mark, colour = _MARKS[check.state]
        click.echo(f"{click.style(mark, fg=colour)} {ui.plain(f'{check.name}: {check.message}')}")
        if check.advice:
            ui.echo(f"  {check.advice}")
    ui.echo()
    states = [(h.label, _state(h), h.config) for h in report.hosts]
    ui.print_table(("HOST", "SERVER", "SETTINGS"), states, shrinks="SETTINGS")
    ui.echo()
    rows = [(s.name, s.value or "-", s.origin) for s in report.settings]
    ui.print_table(("SETTING", "VALUE", "SET BY"), rows, shrinks="VALUE")
    return 0 if report.ok else 1


def _state(host: HostState) -> str:
    if host.problem:
        return "unreadable"
    if host.missing:
        return "registered, does not start"
    return "registered" if host.registered else "not registered" if host.found else "no such host here"
