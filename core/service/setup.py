"""Register the server with a host, and take that back: the change is shown before anything is written."""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import msgspec

from core.errors import Changed, Damaged, InputError
from core.hosts.base import Host, Launch, Machine
from core.hosts.edit import entry_in, with_entry, without_entry
from core.hosts.known import HOSTS, find_host
from core.model import JSON, UNDECODABLE
from core.redact.text import redact
from core.results import Result
from core.transcript.live import FileState
from core.transcript.ordinary import open_ordinary
from core.transcript.writer import make_private, put, remove, replace, write_new

Runner = Callable[[Sequence[str]], int]
"""Runs a program to its end and gives its exit code; 127 where there is none of that name."""


class SetupResult(Result):
    """What was, or would be, done to the settings of a host."""

    host: str
    config: str
    """The file that holds them."""
    backup: str
    """Where the file of before is kept; "" where there was none, or nothing was written."""
    diff: str
    """The change, without the secrets that stand near it."""
    command: list[str]
    """The host's own command that makes the change; empty where it has none, or where it is not installed."""
    changed: bool
    next_step: str
    """What a person has to do now."""


class HostState(Result):
    """Whether a host is on this machine, and whether the server is registered with it."""

    host: str
    label: str
    config: str
    found: bool
    registered: bool
    problem: str
    """Why its settings cannot be read, "" if they can."""
    missing: str
    """The program or script of the registered server that is not there, "" if it starts."""


class _Receipt(msgspec.Struct, frozen=True):
    """What a registration left: with it, taking it back gives the very bytes of before."""

    config: str
    backup: str
    """"" where there was no file."""
    sha256: str
    """Of the file as it was left."""
    folders: tuple[str, ...] = ()
    """Those that were made for it, the innermost first."""


@dataclass(frozen=True, slots=True)
class Setup:
    """A change that is ready to be made; `result` shows it."""

    host: Host
    config: Path
    before: bytes | None
    """None where there is no file."""
    after: bytes | None
    """None: there will be none."""
    result: SetupResult
    receipt: Path

    @property
    def needless(self) -> bool:
        """Whether all is as asked for."""
        return self.before == self.after


def plan_setup(
    name: str, machine: Machine, launch: Launch, state_dir: Path, which: Callable[[str], str | None]
) -> Setup:
    """How the server would be registered with a host; `which` finds programs.

    Raises `InputError` for an unknown host and settings that cannot be read, `Damaged` for broken ones.
    """
    host = find_host(name)
    config, before = _read(host, machine)
    after = _written(config, lambda text: with_entry(text, host, launch), before or b"")
    program = which(host.program) if host.program else None
    command = [program, *host.add(launch)] if program else []
    return _planned(host, config, before, after, host.after, state_dir, command)


def plan_removal(name: str, machine: Machine, state_dir: Path) -> Setup:
    """How that would be taken back: to the bytes of before, or, if the file was changed since, by the entry alone.

    Raises as `plan_setup`.
    """
    host = find_host(name)
    config, before = _read(host, machine)
    receipt = _receipt(_receipt_path(state_dir, host))
    if before is None:
        after = None
    elif receipt and receipt.config == str(config) and receipt.sha256 == _digest(before):
        after = _backed_up(receipt)
    else:
        after = _written(config, lambda text: without_entry(text, host), before)
    return _planned(host, config, before, after, f"start {host.label} anew: the server is gone then", state_dir)


def apply_setup(setup: Setup, run: Runner) -> SetupResult:
    """Makes the change: by the host's own command, or by writing its file anew; a copy of before is kept.

    Raises `Changed` when the file is another one by now, `InputError` when it cannot be read any more, WriteFailed;
    then the file is as it was.
    """
    result = setup.result
    if setup.needless:
        return result
    state = _state_of(setup)
    if setup.after is None or not _is_registered(setup.host, setup.after):
        _write(setup, state)
        _forget(setup)
        return msgspec.structs.replace(result, changed=True)
    backup, folders = _keep(setup), _folders(setup)
    if not _done_by_host(setup, run):
        _write(setup, _state_of(setup))
    left = _content(setup.config) or b""
    receipt = _Receipt(str(setup.config), str(backup) if backup else "", _digest(left), folders)
    put(setup.receipt, msgspec.json.encode(receipt))
    return msgspec.structs.replace(result, changed=True, backup=receipt.backup)


def host_states(machine: Machine) -> list[HostState]:
    """All hosts, each as it is on this machine; nothing is written."""
    return [_state(host, machine) for host in HOSTS.values()]


def _state(host: Host, machine: Machine) -> HostState:
    config = host.config(machine)
    problem, entry = "", cast("JSON", None)
    try:
        _, data = _read(host, machine)
        entry = None if data is None else _entry(host, data)
    except InputError as error:
        problem = str(error)
    except Damaged as error:
        problem = f"{config}: {error}"
    found = os.path.exists(config) or (os.path.exists(config.parent) and config.parent != machine.home)
    return HostState(
        host=host.name,
        label=host.label,
        config=str(config),
        found=found,
        registered=entry is not None,
        problem=problem,
        missing=_missing(entry),
    )


def _missing(entry: JSON) -> str:
    """What an entry starts and is not there: of the program and the script, as they stand in it, with whole paths."""
    if not isinstance(entry, dict):
        return ""
    args = entry.get("args")
    started = [entry.get("command"), *(args[:1] if isinstance(args, list) else [])]
    paths = [Path(word) for word in started if isinstance(word, str)]
    return next((str(path) for path in paths if path.is_absolute() and not path.exists()), "")


def _planned(
    host: Host,
    config: Path,
    before: bytes | None,
    after: bytes | None,
    next_step: str,
    state_dir: Path,
    command: Sequence[str] = (),
) -> Setup:
    result = SetupResult(
        host=host.name,
        config=str(config),
        backup="",
        diff=_diff(config, before or b"", after or b""),
        command=[*command],
        changed=False,
        next_step=next_step if before != after else "",
    )
    return Setup(host, config, before, after, result, _receipt_path(state_dir, host))


def _read(host: Host, machine: Machine) -> tuple[Path, bytes | None]:
    config = host.config(machine)
    return config, _content(config)


def _content(config: Path) -> bytes | None:
    """What a file holds, None where there is none; raises `InputError`."""
    try:
        with open_ordinary(config) as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{config}: {error.strerror}", "check the path and who may read it") from None


def _written(config: Path, edit: Callable[[str], str], before: bytes) -> bytes:
    try:
        return edit(_text(before)).encode("utf-8")
    except Damaged as error:
        raise Damaged(f"{config}: {error}", error.hint) from None


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise Damaged("no UTF-8 text", "correct the file by hand, or move it away") from None


def _is_registered(host: Host, data: bytes) -> bool:
    return _entry(host, data) is not None


def _entry(host: Host, data: bytes) -> JSON:
    """The entry of the server in the bytes of the settings, None if there is none; raises Damaged."""
    return entry_in(_text(data), host)


def _done_by_host(setup: Setup, run: Runner) -> bool:
    """Whether the host's own command made the entry; where it fails, its file is as it was or better."""
    if not setup.result.command or run(setup.result.command) != 0:
        return False
    left = _content(setup.config)
    with suppress(Damaged):
        return left is not None and _is_registered(setup.host, left)
    return False


def _diff(config: Path, before: bytes, after: bytes) -> str:
    old, new = (redact(data.decode("utf-8", "replace")).splitlines() for data in (before, after))
    return "\n".join(difflib.unified_diff(old, new, str(config), str(config), n=2, lineterm=""))


def _keep(setup: Setup) -> Path | None:
    """A copy of the file as it was before the first registration."""
    receipt = _receipt(setup.receipt)
    if receipt and setup.before is not None and receipt.sha256 == _digest(setup.before):
        return Path(receipt.backup) if receipt.backup else None
    if setup.before is None:
        return None
    backup = setup.receipt.with_name(f"{setup.host.name}.{_digest(setup.before)[:12]}.bak")
    put(backup, setup.before)
    return backup


def _folders(setup: Setup) -> tuple[str, ...]:
    """The folders that have to be made, with those that an earlier registration made."""
    receipt = _receipt(setup.receipt)
    made = [str(folder) for folder in setup.config.parents if not os.path.exists(folder)]
    return (*made, *(receipt.folders if receipt else ()))


def _forget(setup: Setup) -> None:
    """Takes away what the registration left beside the file."""
    receipt = _receipt(setup.receipt)
    remove(setup.receipt, missing_ok=True)
    with suppress(OSError):  # somebody keeps something in it now
        for folder in receipt.folders if receipt and setup.after is None else ():
            Path(folder).rmdir()


def _state_of(setup: Setup) -> FileState | None:
    """The state of the file, None where there is none; raises `Changed` where it is not what was read."""
    state = FileState.of(setup.config) if os.path.exists(setup.config) else None
    if _content(setup.config) != setup.before:
        raise Changed(f"{setup.config}: the file was changed meanwhile", "run the command again")
    return state


def _write(setup: Setup, state: FileState | None) -> None:
    if setup.after is None:
        remove(setup.config, missing_ok=True)
    elif state:
        replace(setup.config, [setup.after], state)
    else:
        make_private(setup.config.parent)
        write_new(setup.config, [setup.after])


def _receipt_path(state_dir: Path, host: Host) -> Path:
    return state_dir / "hosts" / f"{host.name}.json"


def _receipt(path: Path) -> _Receipt | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Receipt)
    except (OSError, *UNDECODABLE):
        return None


def _backed_up(receipt: _Receipt) -> bytes | None:
    if not receipt.backup:
        return None
    try:
        return Path(receipt.backup).read_bytes()
    except OSError as error:
        raise InputError(f"{receipt.backup}: {error.strerror}", "take the entry out of the file by hand") from None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
