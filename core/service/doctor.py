"""Is everything in place: the client's folder, the settings and where they come from, what is open."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from core import __version__
from core.context.tokens.models import load as load_models
from core.errors import FoldmarkError, NoServer, SettingsError
from core.hosts.base import NAME, Launch, Machine
from core.hosts.probe import probe
from core.results import Result
from core.service.setup import HostState, host_states
from core.settings import KEYS, Settings, unknown_variables
from core.transcript.live import open_sessions
from core.transcript.projects import session_files


class Check(Result):
    """One thing that was looked at, and what to do when it is not well."""

    name: str
    state: Literal["ok", "note", "problem"]
    message: str
    advice: str = ""


class SettingLine(Result):
    """A setting, its value, and where the value was set."""

    name: str
    value: str
    origin: str


class DoctorReport(Result):
    """The state of things; `ok` when nothing is a problem."""

    version: str
    python: str
    ok: bool
    checks: list[Check]
    hosts: list[HostState]
    settings: list[SettingLine]


def doctor(
    settings: Settings,
    private_dirs: Sequence[Path],
    machine: Machine,
    launch: Launch,
    faults: Sequence[SettingsError] = (),
) -> DoctorReport:
    """Looks at what Foldmark works with; `private_dirs` are its own folders, `launch` starts the server, which is
    asked for its tools; `faults` is what was left out of the settings.  Nothing is written."""
    checks = [Check(name="settings", state="problem", message=str(each), advice=each.hint) for each in faults]
    checks += [_no_setting(each) for each in unknown_variables(machine.env)]
    checks += [_client_folder(settings.claude_dir), _open(settings.claude_dir), _models(settings.models_file)]
    checks += [_writable(folder) for folder in private_dirs]
    checks.append(_server(launch, machine.env))
    hosts = host_states(machine)
    checks += [_broken(host) for host in hosts if host.problem or host.missing]
    lines = [SettingLine(name=key, value=_value(getattr(settings, key)), origin=settings.origin(key)) for key in KEYS]
    ok = all(c.state != "problem" for c in checks)
    python = sys.version.split()[0]
    return DoctorReport(version=__version__, python=python, ok=ok, checks=checks, hosts=hosts, settings=lines)


def _value(value: object) -> str:
    """A setting in words; "" where nothing is set."""
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _no_setting(variable: SettingsError) -> Check:
    """What another program may have set is no problem of this one."""
    return Check(name="settings", state="note", message=str(variable), advice=variable.hint)


def _client_folder(claude_dir: Path) -> Check:
    if not (claude_dir / "projects").is_dir():
        advice = "set CLAUDE_CONFIG_DIR if the client's folder is elsewhere; paths of transcripts work in any case"
        return Check(name="transcripts", state="note", message=f"{claude_dir} holds no sessions", advice=advice)
    count = len(session_files(claude_dir))
    return Check(name="transcripts", state="ok", message=f"{count} session{'s' if count > 1 else ''} in {claude_dir}")


def _open(claude_dir: Path) -> Check:
    count = len(open_sessions(claude_dir))
    return Check(name="open sessions", state="ok", message=f"{count} open in a client now")


def _models(path: Path | None) -> Check:
    try:
        load_models(path)
    except FoldmarkError as error:
        return Check(name="model table", state="problem", message=str(error), advice=error.hint)
    return Check(name="model table", state="ok", message=str(path) if path else "the built-in one")


def _server(launch: Launch, env: Mapping[str, str]) -> Check:
    try:
        return Check(name="server", state="ok", message=f"answers, with {len(probe(launch, env))} tools")
    except NoServer as error:
        advice = f"start it by hand to see more: {launch.command} {' '.join(launch.args)}"
        return Check(name="server", state="problem", message=str(error), advice=advice)


def _broken(host: HostState) -> Check:
    if host.missing:
        message = f"what it starts as {NAME} is not there: {host.missing}"
        return Check(
            name=host.label, state="problem", message=message, advice=f"foldmark setup {host.host} sets it anew"
        )
    advice = "correct the file by hand: the host reads nothing of it"
    return Check(name=host.label, state="problem", message=host.problem, advice=advice)


def _writable(folder: Path) -> Check:
    nearest = next(p for p in (folder, *folder.parents) if p.exists())
    if os.access(nearest, os.W_OK):
        return Check(name="own folder", state="ok", message=str(folder))
    advice = "compacting in place needs a lock there; set XDG_STATE_HOME to a folder that can be written"
    return Check(name="own folder", state="problem", message=f"{folder} cannot be written", advice=advice)
