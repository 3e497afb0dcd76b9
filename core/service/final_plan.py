"""What of earlier decisions, and of images, is settled when a compaction is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.compaction.full import CompactionPlan, Measure
from core.context.decisions import Decision, State, fold
from core.model import Message
from core.service.job import Job
from core.service.past_decisions import decided, still_about, take_along, with_contents_back
from core.stages.base import Plan, Scene, applied
from core.stages.media import Media, MediaSettings
from core.transcript.store import Store


@dataclass(frozen=True, slots=True)
class FinalPlan:
    """A compaction ready to be written: no kept result points to what goes, no kept message holds an image.

    An image or document that the API cannot process would make every request of the new session fail: a note that
    names its file stands for each.
    """

    plan: CompactionPlan
    decisions: tuple[Decision, ...]
    """What was decided, before and now, about what is kept: it holds in the new session too."""
    _earlier: tuple[Decision, ...]
    _media: Plan

    @classmethod
    def of(cls, planned: CompactionPlan, job: Job, store: Store) -> FinalPlan:
        """A plan settled; `store` is that of the result."""
        earlier = decided(job.session)
        old = Store.beside(job.session.path)
        stays = with_contents_back((*planned.head, *planned.kept), fold(earlier), old)
        head, kept = stays[: len(planned.head)], stays[len(planned.head) :]
        scene = Scene(kept, job.session.model, State(), store_folder=str(store.folder))
        media = Media(MediaSettings("all")).plan(scene)
        noted = {m.uuid: m for m in applied(scene, media).view().messages if m.kind != "response"}
        kept = tuple(noted.get(m.uuid, m) for m in kept)
        decisions = still_about((*earlier, *media.decisions), (*head, *kept))
        return cls(_with(planned, head, kept, job.measure), decisions, earlier, media)

    def store(self, job: Job, store: Store) -> None:
        """Stores what the decisions lean on; raises WriteFailed, Damaged."""
        store.put_all((body.id, body.content, "") for body in self._media.bodies)
        take_along(store, job.session, self._earlier)


def _with(
    planned: CompactionPlan, head: Sequence[Message], kept: Sequence[Message], measure: Measure
) -> CompactionPlan:
    """The plan with other contents of what stays, measured anew."""
    sizes = [*planned.sizes_tokens]
    tail = len(sizes) - len(planned.kept)
    stayed = [*enumerate(zip(planned.head, head, strict=True)), *enumerate(zip(planned.kept, kept, strict=True), tail)]
    for place, (old, new) in stayed:
        if new is not old:
            sizes[place] = measure([new])[0]
    after = planned.overhead_tokens + sum(sizes)
    return replace(planned, head=tuple(head), kept=tuple(kept), sizes_tokens=tuple(sizes), tokens_after=after)
