"""A conversation as quoted text for a model: who said what, results cut, and whole rounds that can be left out.

The lines that say who speaks carry a mark which is made of the text itself: nothing that a tool printed can hold it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

import msgspec

from core.context.rounds import cut_points
from core.context.tokens.estimate import Estimator
from core.context.tokens.models import SYNTHETIC, Model
from core.facts.text import cut, typed
from core.model import Message, block_text, call_id, text_block, tool_uses
from core.transcript.outline import outline_blocks

RESULT_CHARS, ERROR_CHARS = 2_000, 4_000
"""Of a tool result, and of one that is an error: head and tail of it."""
_TAIL_PART = 0.4
_PROMPT_CHARS = 20_000
"""Of what a person typed or pasted; real requests stay far below it."""


@dataclass(frozen=True, slots=True)
class Part:
    """One round (a request, or a response with its results), and whether it has to stay."""

    text: str
    tokens: float
    stays: bool = False
    left_out: bool = False


@dataclass(frozen=True, slots=True)
class Quotation:
    """A conversation in parts, oldest first."""

    mark: str
    parts: tuple[Part, ...]

    @property
    def left_out(self) -> int:
        """How many rounds are left out."""
        return sum(part.left_out for part in self.parts)

    @property
    def text(self) -> str:
        """What is sent; a line stands where rounds are left out."""
        out = []
        for gone, parts in groupby(self.parts, key=lambda part: part.left_out):
            members = [*parts]
            if gone:
                out.append(f"[[{self.mark} left out: {len(members)} rounds, too long to be sent]]")
            else:
                out += [part.text for part in members]
        return "\n\n".join(out)

    def without(self, tokens: float) -> Quotation:
        """With the oldest rounds left out that hold so many tokens; the same if none can go."""
        places = []
        for at in self._droppable():
            if tokens <= 0:
                break
            places.append(at)
            tokens -= self.parts[at].tokens
        return self._without(places)

    def without_share(self, share: float) -> Quotation:
        """With this share of the rounds that can go left out, the oldest ones, one at least."""
        droppable = self._droppable()
        return self._without(droppable[: max(1, round(share * len(droppable)))])

    def _droppable(self) -> list[int]:
        return [at for at, part in enumerate(self.parts) if not (part.stays or part.left_out)]

    def _without(self, places: Sequence[int]) -> Quotation:
        gone = {*places}
        return replace(
            self,
            parts=tuple(replace(p, left_out=True) if at in gone else p for at, p in enumerate(self.parts)),
        )


def quotation(messages: Sequence[Message], model: Model) -> Quotation:
    """The messages as quoted text; what a client injected, and earlier summaries, are not in it.

    The first and the last request and the last round stay whatever is left out.
    """
    mark, names = _mark(messages), _tool_names(messages)
    tokens = Estimator(model).tokens
    rounds = []
    for begin, end in pairwise(cut_points(messages)):
        members = messages[begin:end]
        if text := "\n\n".join(filter(None, (_quoted(m, mark, names) for m in members))):
            rounds.append(
                (Part(text, tokens(outline_blocks([text_block(text)]))), any(m.kind == "prompt" for m in members))
            )
    asked = [at for at, (_, is_request) in enumerate(rounds) if is_request]
    staying = {*asked[:1], *asked[-1:], len(rounds) - 1}
    return Quotation(mark, tuple(replace(part, stays=at in staying) for at, (part, _) in enumerate(rounds)))


def labelled(messages: Sequence[Message], labels: Sequence[str]) -> str:
    """The messages as quoted text in which each one goes by its label, so that an answer can name it."""
    mark, names = _mark(messages), _tool_names(messages)
    quoted = (_quoted(m, f"{mark} {label}:", names) for m, label in zip(messages, labels, strict=True))
    return "\n\n".join(filter(None, quoted))


def earlier_summary(request_previous: str, messages: Sequence[Message]) -> str:
    """The summaries that a new one brings up to date, oldest first."""
    found = [request_previous, *("\n".join(map(block_text, m.content)) for m in messages if m.kind == "summary")]
    return "\n\n".join(text.strip() for text in found if text.strip())


def _tool_names(messages: Sequence[Message]) -> dict[str, str]:
    return {call_id(call): str(call.get("name") or "tool") for m in messages for call in tool_uses(m)}


def _mark(messages: Sequence[Message]) -> str:
    digest = hashlib.sha256()
    for message in messages:
        digest.update(msgspec.json.encode(message.content))
    return digest.hexdigest()[:10]


def _quoted(message: Message, mark: str, names: dict[str, str]) -> str:
    if message.model == SYNTHETIC or message.kind not in ("prompt", "response", "results"):
        return ""
    who = "agent" if message.role == "assistant" else "person"
    said = [f"[[{mark} {label}]]\n{text}" for label, text in _pieces(message, who, names) if text.strip()]
    return "\n\n".join(said)


def _pieces(message: Message, who: str, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    for block in message.content:
        match block.get("type"):
            case "text":
                text = block_text(block)
                yield who, text if who == "agent" else cut(typed(text), _PROMPT_CHARS, int(_PROMPT_CHARS * _TAIL_PART))
            case "tool_use":
                given = msgspec.json.encode(block.get("input")).decode()
                yield f"call of {names[call_id(block)]}", _shortened(given, RESULT_CHARS)
            case "tool_result":
                failed = block.get("is_error") is True
                what = f"{'error' if failed else 'result'} of {names.get(call_id(block), 'tool')}"
                yield what, _shortened(block_text(block), ERROR_CHARS if failed else RESULT_CHARS)
            case "image" | "document" as medium:
                yield who, f"[{medium}]"


def _shortened(text: str, chars: int) -> str:
    """Head and tail; what is between is counted."""
    if len(text) <= chars:
        return text
    tail = int(chars * _TAIL_PART)
    return f"{text[: chars - tail]}\n[… {len(text) - chars:,} characters left out …]\n{text[-tail:]}"
