"""State changes that are appended to the history instead of rewriting its prefix: what changed, kind by kind.

A new kind is one file and one line here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import msgspec

from core.attachments.agent_listing_delta import AgentListingDelta
from core.attachments.base import Attachment, World
from core.attachments.changed_files import ChangedFiles
from core.attachments.context_efficiency import ContextEfficiency
from core.attachments.date_change import DateChange
from core.attachments.deferred_tools_delta import DeferredToolsDelta
from core.attachments.dynamic_skill import DynamicSkill
from core.attachments.mcp_instructions_delta import McpInstructionsDelta
from core.attachments.nested_memory import NestedMemory
from core.attachments.plan_mode import PlanMode
from core.attachments.queued_command import QueuedCommand
from core.attachments.task_reminder import TaskReminder

KINDS: tuple[type[Attachment], ...] = (
    QueuedCommand,
    DateChange,
    DeferredToolsDelta,
    AgentListingDelta,
    McpInstructionsDelta,
    ChangedFiles,
    NestedMemory,
    DynamicSkill,
    PlanMode,
    TaskReminder,
    ContextEfficiency,
)
"""In the order in which they are appended."""
_BY_TAG: Mapping[str, type[Attachment]] = MappingProxyType(
    {str(kind.__struct_config__.tag): kind for kind in KINDS} | {"date": DateChange}  # what newer clients call it
)


@dataclass(frozen=True, slots=True)
class Scanned:
    """What a scan of everything found, and what a person should know: which kinds could not be scanned, and why."""

    attachments: tuple[Attachment, ...] = ()
    remarks: tuple[str, ...] = ()


def scan(world: World, earlier: Sequence[Attachment]) -> Scanned:
    """What changed since the earlier attachments of the active view; a kind that fails is left out, the others stay."""
    found: list[Attachment] = []
    remarks: list[str] = []
    for kind in KINDS:
        try:
            found += kind.scan(world, earlier)
        except Exception as error:  # noqa: BLE001 (no fault of one kind may end a turn)
            remarks.append(f"{kind.__struct_config__.tag} was not looked at: {type(error).__name__}: {error}")
    return Scanned(tuple(found), tuple(remarks))


def decode(data: object) -> Attachment | None:
    """An attachment as a journal or a client's row holds it; None for kinds that are not known, and for damage."""
    tag = data.get("type") if isinstance(data, dict) else None
    kind = _BY_TAG.get(tag) if isinstance(tag, str) else None
    if kind is None or not isinstance(data, dict):
        return None
    try:
        return msgspec.convert({**data, "type": kind.__struct_config__.tag}, kind)
    except msgspec.ValidationError:
        return None
