"""The Message Batches API: many requests at half the price, answered within a day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol, TypeAlias

import msgspec

from core.api.endpoint import Reply
from core.api.failures import classify
from core.api.stream import reply_of
from core.errors import ApiError
from core.model import JSON, UNDECODABLE, mapping, string

_PATH = "/v1/messages/batches"
MOST_REQUESTS, MOST_BYTES = 10_000, 200_000_000
"""Of one batch; the API takes 100,000 and 256 MB."""

Outcome: TypeAlias = "Reply | ApiError"


class Caller(Protocol):
    """Whatever sends requests of the API that are no messages: `AnthropicEndpoint`."""

    def call(self, method: str, path: str, body: Mapping[str, JSON] | None = None) -> JSON:
        """The JSON that a request is answered with; text where the answer is none.  Raises `ApiError`."""


def submit(caller: Caller, bodies: Mapping[str, Mapping[str, JSON]]) -> str:
    """Sends the bodies, each under an id of its own (letters, digits, `-`, `_`; at most 64): the id of the batch."""
    requests: list[JSON] = [{"custom_id": ident, "params": dict(body)} for ident, body in bodies.items()]
    ident = string(mapping(caller.call("POST", _PATH, {"requests": requests})).get("id"))
    if not ident:
        raise ApiError("request", "the model API gave the batch no id")
    return ident


def has_ended(caller: Caller, batch: str) -> bool:
    """Whether all requests of a batch have an outcome."""
    return string(mapping(caller.call("GET", f"{_PATH}/{batch}")).get("processing_status")) == "ended"


def outcomes(caller: Caller, batch: str) -> dict[str, Outcome]:
    """What became of each request of a batch that has ended."""
    lines = caller.call("GET", f"{_PATH}/{batch}/results")
    results = [_decoded(line) for line in lines.splitlines()] if isinstance(lines, str) else [mapping(lines)]
    return {string(r.get("custom_id")): _outcome(mapping(r.get("result"))) for r in results if r.get("custom_id")}


def portions(bodies: Mapping[str, Mapping[str, JSON]]) -> Iterator[dict[str, Mapping[str, JSON]]]:
    """The bodies in lots that fit into a batch."""
    lot: dict[str, Mapping[str, JSON]] = {}
    room = MOST_BYTES
    for ident, body in bodies.items():
        size = len(msgspec.json.encode(body))
        if lot and (size > room or len(lot) == MOST_REQUESTS):
            yield lot
            lot, room = {}, MOST_BYTES
        lot[ident] = body
        room -= size
    if lot:
        yield lot


def _decoded(line: str) -> dict[str, JSON]:
    try:
        value: JSON = msgspec.json.decode(line)
    except UNDECODABLE:
        return {}
    return mapping(value)


def _outcome(result: Mapping[str, JSON]) -> Outcome:
    kind = string(result.get("type"))
    if kind == "succeeded":
        return reply_of(mapping(result.get("message")))
    if kind == "errored":
        error = mapping(mapping(result.get("error")).get("error"))
        return classify(None, string(error.get("type")), string(error.get("message")))
    return ApiError("deadline", f"the batch was {kind or 'lost'} before this request had its turn", "submit it again")
