"""An endpoint that counts what it costs, and stops before a cap is passed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from core.api.endpoint import Endpoint, Reply
from core.api.payload import prompt_tokens
from core.context.tokens.cost import request_cost
from core.context.tokens.models import Models, load
from core.errors import ApiError
from core.model import JSON, Usage, mapping, mappings, string
from core.transcript.formats.messages import usage_of


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that all calls together may take; None: any amount."""

    tokens: int | None = None
    """Of prompts and answers, cached ones too."""
    dollars: float | None = None
    """At list prices."""
    seconds: float | None = None


NO_CAPS = Caps()


@dataclass(frozen=True, slots=True)
class Bill:
    """What was spent so far; a call that broke off costs its prompt, one that was refused nothing."""

    calls: int = 0
    """Those that were answered."""
    usage: Usage = field(default_factory=Usage)
    dollars: float | None = 0.0
    """None once a model was used whose prices are not known."""


class Metered:
    """An endpoint around an endpoint; raises `ApiError` of kind "spend" or "deadline" instead of passing a cap.

    A call is let through if its estimated prompt and the longest answer that it allows still have room; tries of it
    that broke off are put on the bill behind it, and can pass a cap by their prompts.  `clock` gives seconds that only
    grow; the time runs from the making on.
    """

    def __init__(
        self, inner: Endpoint, caps: Caps, *, clock: Callable[[], float], models: Models | None = None
    ) -> None:
        self._inner, self._caps, self._clock = inner, caps, clock
        self._models = models or load()
        self._begin = clock()
        self.spent = Bill()

    def send(self, body: Mapping[str, JSON], on_text: Callable[[str], None] | None = None) -> Reply:
        """The answer of the inner endpoint, put on the bill."""
        self._check(body)
        model = string(body.get("model"))
        try:
            reply = self._inner.send(body, on_text)
        except ApiError as error:
            self._add([(error.usage, model)], model, calls=0)
            raise
        self._add(billed(reply), model, calls=1)
        return reply

    def count(self, body: Mapping[str, JSON]) -> int:
        """The count of the inner endpoint; it is free."""
        self._check_time()
        return self._inner.count(body)

    def _check(self, body: Mapping[str, JSON]) -> None:
        self._check_time()
        if self._caps.tokens is None and self._caps.dollars is None:
            return
        most, model = body.get("max_tokens"), self._models.lookup(string(body.get("model")))
        expected = Usage(prompt_tokens(body, model), output_tokens=most if isinstance(most, int) else 0)
        if self._caps.tokens is not None:
            after_tokens = self.spent.usage.total_tokens + expected.total_tokens
            if after_tokens > self._caps.tokens:
                raise _over(f"{self._caps.tokens:,} tokens", f"{after_tokens:,}")
        if self._caps.dollars is not None:
            cost = request_cost(expected, model)
            if cost is None or self.spent.dollars is None:
                raise ApiError(
                    "spend",
                    f"what {string(body.get('model'))} costs is not known, and there is a cap on money",
                    "name its prices in a models_file, or use a cap on tokens",
                )
            if self.spent.dollars + cost > self._caps.dollars:
                raise _over(f"${self._caps.dollars:g}", f"${self.spent.dollars + cost:.4f}")

    def _check_time(self) -> None:
        if self._caps.seconds is not None and self._clock() - self._begin >= self._caps.seconds:
            raise ApiError("deadline", f"the {self._caps.seconds:g} seconds for all calls are over", "raise the cap")

    def _add(self, parts: Sequence[tuple[Usage, str]], model: str, calls: int) -> None:
        usage, dollars = self.spent.usage, self.spent.dollars
        for part, of_model in parts:
            cost = request_cost(part, self._models.lookup(of_model or model)) if part.total_tokens else 0.0
            dollars = None if dollars is None or cost is None else dollars + cost
            usage += part
        self.spent = Bill(self.spent.calls + calls, usage, dollars)


def billed(reply: Reply) -> list[tuple[Usage, str]]:
    """What a reply is charged for, each part with its model where that is another one.

    The API leaves its own compactions out of the totals: with `usage.iterations` the sum of those is the bill.  Tries
    that broke off before the reply come on top.
    """
    iterations = mappings(mapping(reply.raw.get("usage")).get("iterations"))
    parts = [(usage_of(part) or Usage(), string(part.get("model")) or reply.model) for part in iterations]
    return [*(parts or [(reply.usage, reply.model)]), (reply.lost, reply.model)]


def billed_usage(reply: Reply) -> Usage:
    """All that a reply is charged for."""
    return sum((part for part, _ in billed(reply)), Usage())


def _over(cap: str, after: str) -> ApiError:
    return ApiError("spend", f"the next call could pass the cap of {cap}: {after} in all", "raise the cap")
