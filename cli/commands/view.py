"""`foldmark view`: the active view, as the model would get it."""

from __future__ import annotations

import json

import click

from cli import options, ui
from core.context.dialect import dialect_of
from core.service.session import opened
from core.service.view import ViewResult, view


@click.command(short_help="Show what the next model call would see.")
@click.argument("session")
@click.option(
    "--client", default="", metavar="VERSION", help="As this version of the client sends it; else the newest."
)
@click.option("--pick", default="", help="Which conversation, of a file that holds several.")
@options.json_option
@click.pass_context
def command(ctx: click.Context, session: str, client: str, pick: str, as_json: bool) -> None:
    """Show the active view of SESSION: exactly the messages that the next model call would get."""
    settings = options.settings()
    with opened(options.find(ctx, session, settings.claude_dir), dialect_of(client), pick=pick) as found:
        result = view(found)
    if as_json:
        ui.print_json(result.model_dump(mode="json"))
        return
    _print(result)


def _print(result: ViewResult) -> None:
    for message in result.messages:
        click.secho(f"── {message['role']} ", fg="cyan" if message["role"] == "user" else "green", bold=True)
        for block in message["content"]:
            click.echo(_shown(block))
        click.echo()
    for line in result.report:
        click.echo(ui.plain(line), err=True)


def _shown(block: dict[str, object]) -> str:
    match block.get("type"):
        case "text" | "thinking":
            return ui.printable(str(block.get("text") or block.get("thinking") or ""))
        case "tool_use":
            return ui.printable(
                f"[call {block.get('id')}] {block.get('name')} {json.dumps(block.get('input'), ensure_ascii=False)}"
            )
        case "tool_result":
            content = block.get("content")
            items = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
            text = "\n".join(_shown(item) for item in items if isinstance(item, dict))
            return f"[result of {block.get('tool_use_id')}{', an error' if block.get('is_error') else ''}]\n{text}"
    return f"[{block.get('type')}]"
