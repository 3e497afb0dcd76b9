"""Caps: no call is made that could pass one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from core.api.endpoint import Reply
from core.api.metered import NO_CAPS, Bill, Caps, Metered, billed_usage
from core.errors import ApiError
from core.model import JSON, Usage

BODY: dict[str, JSON] = {
    "model": "claude-haiku-4-5",
    "max_tokens": 1_000,
    "messages": [{"role": "user", "content": "hi"}],
}
CHEAP = Usage(input_tokens=100, output_tokens=50)


class Fixed:
    """An endpoint that costs the same each time."""

    def __init__(self, usage: Usage = CHEAP, raw: dict[str, JSON] | None = None) -> None:
        self.calls = 0
        self._reply = Reply((), "end_turn", usage, raw=raw or {})

    def send(self, body: Mapping[str, JSON], on_text: Callable[[str], None] | None = None) -> Reply:
        self.calls += 1
        return self._reply

    def count(self, body: Mapping[str, JSON]) -> int:
        return 7


def metered(caps: Caps, inner: Fixed | None = None, clock: Callable[[], float] = lambda: 0.0) -> Metered:
    return Metered(inner or Fixed(), caps, clock=clock)


def sends(meter: Metered, body: dict[str, JSON] = BODY) -> str:
    """Send until it is refused: the kind of the refusal."""
    try:
        for _ in range(100):
            meter.send(body)
    except ApiError as error:
        return error.kind if error.hint else "no hint"
    raise AssertionError("no cap held")


def test_without_caps_all_is_counted() -> None:
    meter = metered(NO_CAPS)
    meter.send(BODY)
    meter.send(BODY)

    assert meter.spent.calls == 2
    assert meter.spent.usage == Usage(input_tokens=200, output_tokens=100)
    assert meter.spent.dollars == pytest.approx(2 * (100 * 1 + 50 * 5) / 1e6)
    assert meter.count(BODY) == 7


class Breaking(Fixed):
    """An endpoint whose every other call breaks off behind its prompt."""

    def send(self, body: Mapping[str, JSON], on_text: Callable[[str], None] | None = None) -> Reply:
        super().send(body, on_text)
        if self.calls % 2:
            error = ApiError("network", "broken off", "try again")
            error.usage = Usage(input_tokens=100, output_tokens=1)
            raise error
        return replace(self._reply, lost=Usage(input_tokens=200))


def test_what_broke_off_is_on_the_bill_and_counts_for_the_caps() -> None:
    meter = metered(Caps(tokens=1_500), Breaking())
    with pytest.raises(ApiError, match="broken off"):
        meter.send(BODY)
    assert (meter.spent.calls, meter.spent.usage) == (0, Usage(100, output_tokens=1))
    assert meter.spent.dollars == pytest.approx(105 / 1e6)

    reply = meter.send(BODY)
    assert meter.spent.usage == Usage(400, output_tokens=51)
    assert meter.spent.calls == 1
    assert billed_usage(reply) == Usage(300, output_tokens=50)
    with pytest.raises(ApiError, match="broken off"):
        meter.send(BODY)
    with pytest.raises(ApiError, match="cap"):
        meter.send(BODY)


def test_a_refused_call_of_a_model_without_prices_leaves_the_bill_known() -> None:
    class Refusing(Fixed):
        def send(self, body: Mapping[str, JSON], on_text: Callable[[str], None] | None = None) -> Reply:
            raise ApiError("auth", "no")

    meter = metered(NO_CAPS, Refusing())
    with pytest.raises(ApiError):
        meter.send({**BODY, "model": "unheard-of"})

    assert meter.spent == Bill()


def test_a_cap_on_tokens_holds() -> None:
    inner = Fixed()
    meter = metered(Caps(tokens=1_500), inner)

    assert sends(meter) == "spend"
    assert meter.spent.usage.total_tokens <= 1_500
    assert inner.calls == meter.spent.calls > 1


def test_a_cap_on_money_holds() -> None:
    meter = metered(Caps(dollars=0.006))

    assert sends(meter) == "spend"
    assert 0 < (meter.spent.dollars or 0) <= 0.006


def test_a_cap_on_money_needs_a_price() -> None:
    meter = metered(Caps(dollars=5))

    assert sends(meter, {**BODY, "model": "nobody-knows"}) == "spend"
    assert meter.spent.calls == 0


def test_a_model_without_a_price_makes_the_sum_unknown() -> None:
    meter = metered(NO_CAPS)
    meter.send({**BODY, "model": "nobody-knows"})
    meter.send(BODY)

    assert meter.spent.dollars is None


def test_a_cap_on_time_holds() -> None:
    times = iter([0.0, 5.0, 9.9, 10.0, 10.0])
    meter = metered(Caps(seconds=10), clock=lambda: next(times))

    assert sends(meter) == "deadline"
    assert meter.spent.calls == 2
    with pytest.raises(ApiError):
        meter.count(BODY)


def test_a_compaction_of_the_api_is_billed_by_its_iterations() -> None:
    iterations: JSON = [
        {"type": "compaction", "input_tokens": 1_000, "output_tokens": 200},
        {"type": "message", "input_tokens": 10, "output_tokens": 20},
    ]
    inner = Fixed(Usage(input_tokens=10, output_tokens=20), {"usage": {"input_tokens": 10, "iterations": iterations}})
    meter = metered(NO_CAPS, inner)
    reply = meter.send(BODY)

    assert billed_usage(reply) == meter.spent.usage == Usage(input_tokens=1_010, output_tokens=220)
    assert meter.spent.dollars == pytest.approx((1_010 + 220 * 5) / 1e6)
