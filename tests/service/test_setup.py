"""Registered and taken back: the file of a host is what it was, to the byte."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from core.errors import Changed, Damaged, InputError, WriteFailed
from core.hosts.base import Launch, Machine
from core.hosts.edit import entry_in, with_entry
from core.hosts.known import HOSTS, find_host
from core.service.setup import Setup, apply_setup, host_states, plan_removal, plan_setup
from tests.faults import kills

LAUNCH = Launch("/opt/python", ("/opt/foldmark.py", "serve"))
EMPTY = {"json": "{}\n", "jsonc": "{\n}\n", "toml": 'model = "x"\n'}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine("linux", tmp_path / "home")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def no_program(_: str) -> None:
    return None


def never(_: Sequence[str]) -> int:
    raise AssertionError("no program was to be run")


def planned(name: str, machine: Machine, state: Path) -> Setup:
    return plan_setup(name, machine, LAUNCH, state, no_program)


def config_of(name: str, machine: Machine, data: bytes | None) -> Path:
    path = find_host(name).config(machine)
    path.parent.mkdir(parents=True, exist_ok=True)
    if data is not None:
        path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("there", [True, False])
def test_twice_and_back_gives_the_bytes_of_before(name: str, there: bool, machine: Machine, state: Path) -> None:
    before = EMPTY[find_host(name).syntax].encode() if there else None
    path = config_of(name, machine, before)

    first = apply_setup(planned(name, machine, state), never)
    second = planned(name, machine, state)

    assert first.changed
    assert bool(first.backup) == there
    assert entry_in(path.read_text(), find_host(name)) == find_host(name).entry(LAUNCH)
    assert second.needless
    assert not apply_setup(second, never).changed

    removed = apply_setup(plan_removal(name, machine, state), never)

    assert removed.changed
    assert (path.read_bytes() if path.exists() else None) == before
    assert plan_removal(name, machine, state).needless


def test_a_new_file_is_private_and_the_mode_of_an_old_one_stays(machine: Machine, state: Path) -> None:
    apply_setup(planned("cursor", machine, state), never)
    old = config_of("gemini", machine, b"{}")
    old.chmod(0o644)
    apply_setup(planned("gemini", machine, state), never)

    assert find_host("cursor").config(machine).stat().st_mode & 0o777 == 0o600
    assert old.stat().st_mode & 0o777 == 0o644


def test_after_other_changes_only_the_entry_is_taken_out(machine: Machine, state: Path) -> None:
    path = config_of("cursor", machine, b"{}")
    apply_setup(planned("cursor", machine, state), never)
    path.write_bytes(path.read_bytes().replace(b'{\n  "mcpServers"', b'{\n  "new": 1,\n  "mcpServers"'))

    apply_setup(plan_removal("cursor", machine, state), never)

    assert b'"new": 1' in path.read_bytes()
    assert entry_in(path.read_text(), find_host("cursor")) is None


def test_another_launch_keeps_the_copy_of_before_the_first(machine: Machine, state: Path) -> None:
    path = config_of("codex", machine, b"# mine\n")
    apply_setup(planned("codex", machine, state), never)
    again = plan_setup("codex", machine, Launch("/new", ()), state, no_program)
    apply_setup(again, never)
    apply_setup(plan_removal("codex", machine, state), never)

    assert path.read_bytes() == b"# mine\n"


def test_the_hosts_own_command_is_used_where_there_is_one(machine: Machine, state: Path) -> None:
    path = config_of("codex", machine, b"# mine\n")
    ran = []

    def run(command: Sequence[str]) -> int:
        ran.append([*command])
        path.write_text(with_entry(path.read_text() + "# by codex\n", find_host("codex"), LAUNCH))
        return 0

    setup = plan_setup("codex", machine, LAUNCH, state, lambda program: f"/bin/{program}")
    apply_setup(setup, run)

    assert ran == [["/bin/codex", *find_host("codex").add(LAUNCH)]] == [setup.result.command]
    assert "# by codex" in path.read_text()
    apply_setup(plan_removal("codex", machine, state), never)
    assert path.read_bytes() == b"# mine\n"


@pytest.mark.parametrize("code", [0, 1])
def test_a_command_that_does_nothing_is_made_up_for(code: int, machine: Machine, state: Path) -> None:
    path = config_of("codex", machine, None)
    apply_setup(plan_setup("codex", machine, LAUNCH, state, lambda program: f"/bin/{program}"), lambda _: code)

    assert entry_in(path.read_text(), find_host("codex")) == LAUNCH.entry


def test_a_command_that_breaks_the_file_is_no_success(machine: Machine, state: Path) -> None:
    path = config_of("codex", machine, b"")

    def run(_: Sequence[str]) -> int:
        path.write_text("a = ")
        return 0

    with pytest.raises(Changed):
        apply_setup(plan_setup("codex", machine, LAUNCH, state, lambda program: program), run)


def test_a_change_that_was_made_meanwhile_is_not_overwritten(machine: Machine, state: Path) -> None:
    path = config_of("cursor", machine, b"{}")
    setup = planned("cursor", machine, state)
    path.write_bytes(b'{"a": 1}')

    with pytest.raises(Changed):
        apply_setup(setup, never)
    assert path.read_bytes() == b'{"a": 1}'


@pytest.mark.parametrize(("name", "data"), [("claude-code", b"{ // x\n}"), ("gemini", b"\xff"), ("codex", b"= 1")])
def test_broken_settings_are_named_and_left_alone(name: str, data: bytes, machine: Machine, state: Path) -> None:
    path = config_of(name, machine, data)

    with pytest.raises(Damaged, match=str(path)):
        planned(name, machine, state)
    assert path.read_bytes() == data
    assert next(s for s in host_states(machine) if s.host == name).problem


def test_a_folder_in_the_place_of_the_file_is_refused(machine: Machine, state: Path) -> None:
    config_of("cursor", machine, None).mkdir()

    with pytest.raises(InputError, match="no ordinary file"):
        planned("cursor", machine, state)


def test_a_pipe_in_the_place_of_the_file_is_refused(machine: Machine, state: Path) -> None:
    os.mkfifo(config_of("cursor", machine, None))

    with pytest.raises(InputError, match="no ordinary file"):
        planned("cursor", machine, state)
    assert any("no ordinary file" in found.problem for found in host_states(machine))


def test_without_its_copy_the_way_back_says_what_to_do(machine: Machine, state: Path) -> None:
    config_of("cursor", machine, b"{}")
    result = apply_setup(planned("cursor", machine, state), never)
    Path(result.backup).unlink()

    with pytest.raises(InputError) as error:
        plan_removal("cursor", machine, state)
    assert "by hand" in error.value.hint


def test_killed_at_any_step_of_another_setup_the_copy_of_before_is_still_known(machine: Machine, state: Path) -> None:
    path = config_of("cursor", machine, b"{}")
    backup = apply_setup(planned("cursor", machine, state), never).backup
    receipt = plan_removal("cursor", machine, state).receipt
    files = {file: file.read_bytes() for file in (path, receipt)}
    other = Launch("new", ("serve",))

    for _ in kills(lambda: apply_setup(plan_setup("cursor", machine, other, state, no_program), never)):
        assert json.loads(receipt.read_bytes())["backup"] == backup
        assert Path(backup).read_bytes() == b"{}"
        for file, content in files.items():
            file.write_bytes(content)


@pytest.mark.parametrize("error", [errno.EACCES, errno.EIO])
def test_what_the_disk_refuses_is_said(error: int, machine: Machine, state: Path) -> None:
    config_of("cursor", machine, b"{}")
    apply_setup(planned("cursor", machine, state), never)
    setup = plan_removal("cursor", machine, state)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(error, os.strerror(error))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        with pytest.raises(WriteFailed, match=str(setup.receipt)):
            apply_setup(setup, never)
        patch.setattr(os, "open", refuse)
        with pytest.raises(InputError, match=str(setup.config)):
            apply_setup(setup, never)


def test_a_link_to_the_settings_stays_a_link(machine: Machine, state: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_bytes(b"{}")
    path = config_of("cursor", machine, None)
    path.symlink_to(real)
    apply_setup(planned("cursor", machine, state), never)

    assert path.is_symlink()
    assert b"foldmark" in real.read_bytes()


def test_secrets_are_not_shown(machine: Machine, state: Path) -> None:
    token = "ghp_" + "a1B2" * 9
    config_of("cursor", machine, f'{{"mcpServers": {{"a": {{"env": {{"TOKEN": "{token}"}}}}}}}}'.encode())

    assert token not in planned("cursor", machine, state).result.diff


def test_the_state_of_all_hosts(machine: Machine, state: Path) -> None:
    apply_setup(planned("cursor", machine, state), never)
    states = {s.host: s for s in host_states(machine)}

    assert [*states] == [*HOSTS]
    assert states["cursor"].found
    assert states["cursor"].registered
    assert not states["codex"].found
    assert not states["codex"].registered
    assert states["cursor"].missing == LAUNCH.command
    assert not states["claude-code"].found


@pytest.mark.parametrize("name", HOSTS)
def test_a_server_that_is_gone_is_named(name: str, machine: Machine, state: Path, tmp_path: Path) -> None:
    def missing(launch: Launch) -> str:
        apply_setup(plan_setup(name, machine, launch, state, no_program), never)
        return next(s.missing for s in host_states(machine) if s.host == name)

    program, script = tmp_path / "python", tmp_path / "foldmark.py"
    assert missing(Launch(str(program), (str(script), "serve"))) == str(program)
    program.touch()
    assert missing(Launch(str(program), (str(script), "serve"))) == str(script)
    script.touch()
    assert missing(Launch(str(program), (str(script), "serve"))) == ""
    assert missing(Launch("foldmark", ("serve",))) == ""


def test_folders_that_were_made_go_unless_somebody_keeps_something_there(machine: Machine, state: Path) -> None:
    for kept in (False, True):
        apply_setup(planned("vscode", machine, state), never)
        folder = find_host("vscode").config(machine).parent
        if kept:
            (folder / "settings.json").touch()
            apply_setup(plan_setup("vscode", machine, Launch("foldmark", ("serve",)), state, no_program), never)
        apply_setup(plan_removal("vscode", machine, state), never)

        assert folder.exists() == kept
        assert [*machine.home.iterdir()] == ([machine.home / ".config"] if kept else [])
