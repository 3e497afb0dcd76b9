"""Each host's own file, with the entry and without it again."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from core.errors import Damaged, InputError
from core.hosts.base import NAME, Host, Launch, Machine
from core.hosts.edit import entry_in, with_entry, without_entry
from core.hosts.known import HOSTS, find_host
from core.model import JSON

LAUNCH = Launch("/opt/python", ("/opt/foldmark.py", "serve"))
OTHERS: dict[str, str] = {
    "claude-desktop": """{
  "mcpServers": {
    "a": {"command": "x"}
  },
  "globalShortcut": ""
}
""",
    "claude-code": """{
  "numStartups": 3,
  "projects": {"/srv": {"mcpServers": {}}},
  "mcpServers": {"a": {"type": "stdio", "command": "x"}}
}""",
    "cursor": '{"mcpServers": {"a": {"url": "https://example.org/mcp"}}}',
    "vscode": """{
\t// mine
\t"inputs": [],
\t"servers": {
\t\t"a": { "type": "http", "url": "http://127.0.0.1/mcp" }, // local
\t},
}
""",
    "codex": """# mine
model = "o" # best

[mcp_servers.a]
command = "x"
args = [ "y", ] # z

[projects."/srv"]
trust_level = "trusted"
""",
    "gemini": """{
  // theme
  "theme": "dark",
  "mcpServers": {
    "a": { "command": "x", "trust": false }
  }
}
""",
}


def parsed(host: Host, text: str) -> JSON:
    """The settings, read by the usual decoder where the file is plain."""
    if host.syntax == "toml":
        return tomllib.loads(text)
    lines = [line.split(" //")[0] for line in text.splitlines() if not line.strip().startswith("//")]
    value: JSON = json.loads("".join(lines).replace(",\t}", "\t}").replace(",}", "}"))
    return value


@pytest.mark.parametrize("host", HOSTS.values(), ids=lambda host: host.name)
def test_the_entry_joins_what_is_there_and_leaves_it_as_it_was(host: Host) -> None:
    text = OTHERS[host.name]
    after = with_entry(text, host, LAUNCH)
    settings = parsed(host, after)

    assert isinstance(settings, dict)
    servers = settings[host.key]
    assert isinstance(servers, dict)
    assert servers[NAME] == host.entry(LAUNCH) == entry_in(after, host)
    assert without_entry(after, host) == text
    assert with_entry(after, host, LAUNCH) == after
    assert without_entry(text, host) == text
    assert entry_in(text, host) is None


@pytest.mark.parametrize("host", HOSTS.values(), ids=lambda host: host.name)
def test_an_empty_file_gets_the_entry_alone(host: Host) -> None:
    after = with_entry("", host, LAUNCH)

    assert parsed(host, after) == {host.key: {NAME: host.entry(LAUNCH)}}
    assert entry_in(without_entry(after, host), host) is None
    assert entry_in("", host) is None


def test_another_launch_replaces_the_first() -> None:
    for host in HOSTS.values():
        after = with_entry(with_entry(OTHERS[host.name], host, LAUNCH), host, Launch("/new", (), {"A": "1"}))

        assert entry_in(after, host) == host.entry(Launch("/new", (), {"A": "1"}))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("claude-code", '{"a": 1} // x'),
        ("cursor", "{,}"),
        ("gemini", "{"),
        ("cursor", '{"a":' * 100_000),
        ("codex", "a = "),
        ("codex", "mcp_servers = 1"),
    ],
)
def test_broken_settings_are_refused(name: str, text: str) -> None:
    with pytest.raises(Damaged):
        with_entry(text, find_host(name), LAUNCH)


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("", "# mine\n"),
        ("model = 'o'\n\n", "\n# the next one\n[other]\nx = 1\n"),
        ("", "[mcp_servers.foldmark.env]\n# of mine\nA = '1' # a\n\n# end"),
        ("[mcp_servers] # all of them\n", "# mine\n"),
    ],
)
def test_comments_behind_the_entry_stay(before: str, behind: str) -> None:
    host = find_host("codex")
    entry = '[mcp_servers.foldmark]\ncommand = "/opt/python"\n# where it is\nargs = [\n  "serve", # one\n]\n'

    after = without_entry(before + entry + behind, host)

    assert entry_in(after, host) is None
    assert after.startswith(before)
    assert after.endswith(behind[behind.rfind("\n#") + 1 :])
    assert "where it is" not in after


def test_what_cannot_be_cut_by_lines_is_taken_out_all_the_same() -> None:
    host = find_host("codex")
    text = '[mcp_servers.foldmark]\nargs = [\n[ "a" ],\n]\ncommand = "x"\n[other]\nx = 1\n'

    assert tomllib.loads(without_entry(text, host)) == {"other": {"x": 1}}


def test_what_is_no_table_of_servers_has_no_entry() -> None:
    assert entry_in("mcp_servers = 1", find_host("codex")) is None
    assert without_entry("mcp_servers = 1", find_host("codex")) == "mcp_servers = 1"


def test_an_unknown_host_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(InputError, match="no host 'emacs'") as error:
        find_host("emacs")
    assert "claude-code" in error.value.hint


@pytest.mark.parametrize(
    ("name", "platform", "env", "path"),
    [
        ("claude-desktop", "linux", {}, ".config/Claude/claude_desktop_config.json"),
        ("claude-desktop", "darwin", {}, "Library/Application Support/Claude/claude_desktop_config.json"),
        ("claude-code", "linux", {}, ".claude.json"),
        ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": "{home}/c"}, "c/.claude.json"),
        ("cursor", "linux", {}, ".cursor/mcp.json"),
        ("vscode", "linux", {"XDG_CONFIG_HOME": "{home}/x"}, "x/Code/User/mcp.json"),
        ("vscode", "darwin", {}, "Library/Application Support/Code/User/mcp.json"),
        ("codex", "linux", {}, ".codex/config.toml"),
        ("codex", "linux", {"CODEX_HOME": "{home}/k"}, "k/config.toml"),
        ("gemini", "darwin", {}, ".gemini/settings.json"),
    ],
)
def test_each_host_keeps_its_settings_where_it_does(
    name: str, platform: str, env: dict[str, str], path: str, tmp_path: Path
) -> None:
    machine = Machine(platform, tmp_path, {key: value.format(home=tmp_path) for key, value in env.items()})

    assert find_host(name).config(machine) == tmp_path / path


def test_a_hosts_own_program_is_told_the_same() -> None:
    launch = Launch("/opt/python", ("-m", "x"), {"A": "1"})

    assert json.loads(find_host("claude-code").add(launch)[-1]) == find_host("claude-code").entry(launch)
    assert json.loads(find_host("vscode").add(launch)[-1]) == {"name": NAME, **launch.entry}
    assert find_host("codex").add(launch) == ("mcp", "add", NAME, "--env", "A=1", "--", "/opt/python", "-m", "x")
    assert find_host("gemini").add(launch) == ("mcp", "add", "-s", "user", "-e", "A=1", NAME, "/opt/python", "-m", "x")
    assert find_host("cursor").add(launch) == ()
