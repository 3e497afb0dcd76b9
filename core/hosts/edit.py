"""The settings of a host with, or without, the entry that starts the server: text in, text out."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from core.errors import Damaged
from core.hosts.base import NAME, Host, Launch
from core.hosts.jsonc import value_at, with_member, without_member
from core.model import JSON

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_TOML_ENTRY = re.compile(
    rf'^[ \t]*\[[ \t]*"?\w+"?[ \t]*\.[ \t]*"?{NAME}"?[ \t]*(?:\.[^\]\n]*)?\][^\n]*(?:\n|\Z)'
    r"(?:(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*[^\s#\[][^\n]*(?:\n|\Z))*",
    re.MULTILINE,
)
"""A table of the entry, from its head to its last key."""


def with_entry(text: str, host: Host, launch: Launch) -> str:
    """The settings with the entry; everything else stays, to the byte.  Raises `Damaged` for broken settings."""
    entry = host.entry(launch)
    if host.syntax == "toml":
        return _toml_with(text, host.key, entry)
    _check(text, host)
    return with_member(text, (host.key, NAME), entry)


def without_entry(text: str, host: Host) -> str:
    """The settings without the entry.  Raises `Damaged` for broken settings."""
    if host.syntax == "toml":
        return _toml_without(text, host.key)
    _check(text, host)
    return without_member(text, (host.key, NAME))


def entry_in(text: str, host: Host) -> JSON:
    """The entry as it stands in the settings, None if there is none.  Raises `Damaged` for broken settings."""
    if host.syntax == "toml":
        servers = _toml(text).unwrap().get(host.key, {})
        return servers.get(NAME) if isinstance(servers, dict) else None
    _check(text, host)
    return value_at(text, (host.key, NAME))


def _check(text: str, host: Host) -> None:
    """A file that the host itself cannot read is not made longer."""
    if host.syntax != "json" or not text.strip():
        return
    try:
        json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{host.label} cannot read it: {error}", "correct the file by hand, or move it away") from None


def _toml(text: str) -> TOMLDocument:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise Damaged(str(error), "correct the file by hand, or move it away") from None


def _toml_with(text: str, key: str, entry: dict[str, JSON]) -> str:
    import tomlkit

    document = _toml(text)
    servers = document.setdefault(key, tomlkit.table(is_super_table=True))
    if not isinstance(servers, dict):
        raise Damaged(f"{key} is no table", "correct the file by hand, or move it away")
    if document.unwrap()[key].get(NAME) != entry:
        servers[NAME] = entry
    return document.as_string()


def _toml_without(text: str, key: str) -> str:
    """The settings without the entry, and with the comments behind it, which count as a part of it."""
    without = _toml_deleted(text, key)
    lines = _TOML_ENTRY.sub("", text)
    with suppress(Damaged):  # where it was cut in two, by a line that looks like a head
        if lines.split() != without.split() and _toml_servers(lines, key) == _toml_servers(without, key):
            return lines
    return without


def _toml_deleted(text: str, key: str) -> str:
    document = _toml(text)
    servers = document.get(key)
    if isinstance(servers, dict) and NAME in servers:
        del servers[NAME]
        if not servers:
            del document[key]
    return document.as_string()


def _toml_servers(text: str, key: str) -> JSON:
    """What the settings say; no servers are as good as an empty table of them."""
    return {key: {}, **_toml(text).unwrap()}
