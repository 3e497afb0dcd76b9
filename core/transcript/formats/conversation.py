"""What every foreign format is read into, and what a format is to the registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from core.model import JSON, Block, Message
from core.transcript.findings import Finding


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation of another client, in the block shapes of the Messages API.

    A tool input that is no object stands as `{"input": ...}` (raw text) or `{"arguments": ...}` (text that is no
    JSON).  Thinking of other vendors has no signature; thinking that only its maker can read is a
    `redacted_thinking` without data, and such a summary a `compaction` block whose content is null.
    """

    format: str
    session_id: str = ""
    cwd: str = ""
    title: str = ""
    model: str = ""
    client_version: str = ""
    messages: tuple[Message, ...] = ()
    """Everything, in the order of the file: rolled-back turns, dead branches and what a compaction removed too."""
    active: tuple[Message, ...] = ()
    """What the client would send to the model next; calls without a result stay without one."""
    system: str = ""
    tools: tuple[Block, ...] = ()
    context_tokens: int = 0
    """The client's own last figure for the size of the context, in tokens; 0 where the format keeps none."""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Format:
    """One line of the registry: how a kind of file is recognised, and how it is read if it is."""

    name: str
    label: str
    """How a person calls it, with its article: "a Codex rollout"."""
    matches: Callable[[JSON], bool]
    """Whether a top-level JSON value is one of this format; the value may be cut off at any depth."""
    read: Callable[[Path, str], Conversation] | None = None
    """Reads the file; the text picks one of several conversations, "" the only one.  None: recognised, not read."""
    several: bool = False
    """Whether a file may hold several conversations."""
    advice: str = ""
    """What to do with a file that is recognised and not read."""
