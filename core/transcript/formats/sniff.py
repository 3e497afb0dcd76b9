"""The registry of formats, and what a file is by its content.

Names of files lie: rollouts, chats and exports of four clients are all found as `full.jsonl`.
"""

from __future__ import annotations

from pathlib import Path

from core.errors import InputError, UnknownFormat, WrongFormat
from core.model import JSON, mapping, string
from core.transcript.entries import CHAIN_TYPES
from core.transcript.formats import claude_ai, codex, gemini, messages, opencode, others
from core.transcript.formats.conversation import Format
from core.transcript.formats.damage import is_blank, json_text, values

HEAD_BYTES = 64 * 1024
"""What is read to recognise a file: the first record of nearly all."""
LONG_HEAD_BYTES = 1024 * 1024
"""What is read when that says nothing: one with a long system prompt in front."""


def _claude_code(value: JSON) -> bool:
    """Rows of the chain name a parent; those beside it a session, or a message or leaf of it."""
    row = mapping(value)
    kind = string(row.get("type"))
    if "parentUuid" in row or (kind in CHAIN_TYPES and ("message" in row or "uuid" in row)):
        return True
    return kind == "foldmark" or (kind != "" and not {"sessionId", "leafUuid", "messageId"}.isdisjoint(row))


CLAUDE_CODE = Format("claude-code", "a Claude Code transcript", _claude_code)
FORMATS: tuple[Format, ...] = (
    codex.FORMAT,
    others.PI,
    others.COPILOT,
    gemini.JSON_FORMAT,
    gemini.JSONL_FORMAT,
    others.QWEN,
    CLAUDE_CODE,
    opencode.FORMAT,
    others.CLAUDE_WEB,
    claude_ai.FORMAT,
    others.CHATGPT,
    others.CLINE_SDK,
    others.CLINE_SCREEN,
    others.CLINE,
    others.OPENAI,
    others.GEMINI_CONTENTS,
    others.VERCEL,
    others.LANGCHAIN,
    others.ENTIRE,
    messages.FORMAT,
)
"""All formats, in the order in which they are tried: a new one is one file and one line here."""


def find_format(path: Path) -> Format:
    """The format of a file, one that is read or Claude Code: the first value in it that any format accepts decides.

    Raises WrongFormat for what is recognised but not read, and what `recognised` does.
    """
    found = recognised(path)
    if found.advice:
        raise WrongFormat(f"{path.name} looks like {found.label}", found.advice)
    return found


def recognised(path: Path) -> Format:
    """The format of a file, read or not.

    A file without content is a Claude Code transcript in which nothing was said yet.  Raises UnknownFormat for what is
    of no format, InputError when the file cannot be opened.
    """
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
            try:
                return _recognised(head, path.name)
            except UnknownFormat:
                more = file.read(LONG_HEAD_BYTES - HEAD_BYTES)
                if not more:
                    raise
                return _recognised(head + more, path.name)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror or error}", "Check the path and the rights."
        ) from error


def _recognised(head: bytes, name: str) -> Format:
    found = others.binary(head) or _by_value(json_text(head))
    if found is None:
        known = dict.fromkeys(f.label for f in FORMATS if f.read or f is CLAUDE_CODE)
        raise UnknownFormat(
            f"{name} is no conversation of a client that Foldmark knows", f"It reads {', '.join(known)}."
        )
    return found


def _by_value(text: str) -> Format | None:
    if is_blank(text):
        return CLAUDE_CODE
    for value, _, _ in values(text):
        for candidate in FORMATS:
            if candidate.matches(value):
                return candidate
    return None
