"""A scripted model with a window and a cache: counts what it is sent, refuses too much, bills as the API does."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import msgspec

from core.api.payload import prompt_blocks
from core.context.tokens.estimate import Estimator
from core.context.tokens.models import lookup
from core.model import JSON, Block, mappings
from core.testing.answers import Answer, Failure, prompt_too_long
from core.testing.api import Request, counted
from core.transcript.outline import outline_blocks

_MARK = "cache_control"
_LOOKBACK = 20
"""How many blocks before a cache mark are looked at for what was cached before."""


class WindowedModel:
    """A script for `ScriptedApi`: answers what `reply` says, as long as the prompt fits into the window.

    Tokens are estimated; `tokens_per_estimate` makes the model count more or less than that.  What stands in front
    of a cache mark is read from the cache if the same bytes were marked before.
    """

    def __init__(
        self,
        window_tokens: int,
        reply: Callable[[Request], Answer | Failure],
        *,
        tokens_per_estimate: float = 1.0,
        states_figures: bool = True,
    ) -> None:
        self._window, self._reply = window_tokens, reply
        self._factor, self._states = tokens_per_estimate, states_figures
        self._cached: set[str] = set()
        self.prompts_tokens: list[int] = []
        """The size of each prompt, refused ones too."""

    def __call__(self, request: Request) -> Answer | Failure:
        """React to a request for a message."""
        places = self._places(request.body)
        total = places[-1][1] if places else 0
        self.prompts_tokens.append(total)
        if total > self._window:
            return prompt_too_long(total, self._window) if self._states else prompt_too_long()
        answer = self._reply(request)
        if isinstance(answer, Failure) or answer.usage is not None:
            return answer
        read, marked = self._from_cache(places)
        usage = counted(answer, total - marked, read, marked - read)
        return replace(answer, usage=usage)

    def _places(self, body: Mapping[str, JSON]) -> list[tuple[str, int, bool]]:
        """After each block: a digest of all bytes up to it, the tokens up to it, whether it is marked."""
        estimator = Estimator(lookup(str(body.get("model"))))
        digest, tokens, out = hashlib.sha256(str(body.get("model")).encode()), 0.0, []
        for block, marked in _blocks(body):
            digest.update(msgspec.json.encode(block))
            tokens += estimator.tokens(outline_blocks([block])) * self._factor
            out.append((digest.hexdigest(), round(tokens), marked))
        return out

    def _from_cache(self, places: list[tuple[str, int, bool]]) -> tuple[int, int]:
        """The tokens that are read from the cache, and those in front of the last mark."""
        read = marked = 0
        new = set()
        for at, (digest, tokens, mark) in enumerate(places):
            if not mark:
                continue
            marked = tokens
            new.add(digest)
            seen = [t for d, t, _ in places[max(0, at - _LOOKBACK + 1) : at + 1] if d in self._cached]
            read = max(read, *seen, 0)
        self._cached |= new
        return read, marked


def _blocks(body: Mapping[str, JSON]) -> Iterator[tuple[Block, bool]]:
    """What a body sends, without the cache marks, and where those stand."""
    for tool in mappings(body.get("tools")):
        yield from ((block, _MARK in tool) for block in prompt_blocks({"tools": [_bare(tool)]}))
    rest = prompt_blocks({"system": body.get("system"), "messages": body.get("messages")})
    for at, block in enumerate(rest):
        yield _bare(block), _MARK in block or (_MARK in body and at == len(rest) - 1)


def _bare(block: Block) -> dict[str, JSON]:
    return {key: value for key, value in block.items() if key != _MARK}
