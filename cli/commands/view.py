"""`foldmark view`: the active view, as the model would get it."""

from __future__ import annotations

import json
import re

import click

from cli import options, process, ui
from core.context.dialect import dialect_of
from core.service.session import opened
from core.service.view import ViewResult, view

_VERSION = re.compile(r"\d{1,9}\.\d{1,9}\.\d{1,9}(?!\d)")


class Version(click.ParamType[str]):
    """A version of the client, such as 2.1.197."""

    name = "version"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The same."""
        if value and not _VERSION.match(str(value)):
            self.fail(f"{value!r} is no version: write 2.1.197", param, ctx)
        return str(value)


@click.command()
@click.argument("session", type=options.SessionName())
@click.option("--client", default="", type=Version(), help="As this version of the client sends it; else the newest.")
@options.pick_option
@options.json_option
@click.pass_context
def command(ctx: click.Context, session: str, client: str, pick: str, as_json: bool) -> None:
    """Show the active view of SESSION: exactly the messages that the next model call would get.

    Behind a role stands the id of the message, as foldmark output, snip and compact --from take it.
    """
    settings = process.settings()
    file = options.find(ctx, session, settings.claude_dir, pick)
    with opened(file, dialect_of(client)) as found:
        if client and not found.claude:
            raise click.UsageError("--client is for transcripts of Claude Code, and this is none", ctx)
        result = view(found)
    if as_json:
        ui.emit(result)
        return
    _print(result)


def _print(result: ViewResult) -> None:
    for ident, message in zip(result.ids, result.messages, strict=True):
        head = " ".join(filter(None, ("──", message["role"], ident)))
        click.secho(ui.plain(head), fg="cyan" if message["role"] == "user" else "green", bold=True)
        for block in message["content"]:
            ui.echo(_shown(block))
        ui.echo()
    for line in result.warnings:
        ui.echo(ui.plain(line), err=True)


def _shown(block: dict[str, object]) -> str:
    match block.get("type"):
        case "text" | "thinking":
            return str(block.get("text") or block.get("thinking") or "")
        case "tool_use":
            return f"[call {block.get('id')}] {block.get('name')} {json.dumps(block.get('input'), ensure_ascii=False)}"
        case "tool_result":
            content = block.get("content")
            items = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
            text = "\n".join(_shown(item) for item in items if isinstance(item, dict))
            return f"[result of {block.get('tool_use_id')}{', an error' if block.get('is_error') else ''}]\n{text}"
    return f"[{block.get('type')}]"
