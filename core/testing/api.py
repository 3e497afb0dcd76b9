"""A Messages API on loopback that follows a script: the real SDK talks to it, no network and no key are needed.

    with ScriptedApi([overloaded(), text("Hello")]) as api:
        endpoint = AnthropicEndpoint(Access("any", base_url=api.url), clock=time.monotonic, sleep=time.sleep)
        assert endpoint.send(body).text == "Hello"
        assert len(api.requests) == 2

It answers messages, streamed and not, token counts, and batches.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias, cast

from core.api.payload import prompt_tokens
from core.context.tokens.models import lookup
from core.model import JSON, Block
from core.testing.answers import Answer, Failure

if TYPE_CHECKING:
    from starlette.requests import Request as HttpRequest
    from starlette.responses import Response

_MESSAGES, _COUNT, _BATCHES = "/v1/messages", "/v1/messages/count_tokens", "/v1/messages/batches"
_START_S = 10.0


@dataclass(frozen=True, slots=True)
class Request:
    """One request that the API got."""

    path: str
    body: Mapping[str, JSON]
    headers: Mapping[str, str]
    """Names in lower case."""

    @property
    def betas(self) -> list[str]:
        """The beta headers."""
        return [beta for beta in self.headers.get("anthropic-beta", "").split(",") if beta]


Reaction: TypeAlias = "Answer | Failure | Callable[[Request], Answer | Failure]"
"""What a request is answered with, or what decides it."""
OVER = Failure(400, "invalid_request_error", "the script has no more answers")


class ScriptedApi:
    """A server for the time of a `with`; `url` is its address, `requests` all that it was asked, in order.

    `script` is a list, one reaction for each message in turn, or one callable for all.  A batch takes one for each of
    its requests, and is done after `batch_polls` looks at it.
    """

    def __init__(
        self, script: Sequence[Reaction] | Callable[[Request], Answer | Failure], *, batch_polls: int = 1
    ) -> None:
        self.requests: list[Request] = []
        self.url = ""
        self._script = script
        self._next = 0
        self._batch_polls = batch_polls
        self._batches: list[_Batch] = []
        self._lock = threading.Lock()

    @property
    def bodies(self) -> list[Mapping[str, JSON]]:
        """The bodies of the messages that were asked for, without counts and batches."""
        return [request.body for request in self.requests if request.path == _MESSAGES]

    def __enter__(self) -> Self:
        import uvicorn
        from starlette.applications import Starlette
        from starlette.routing import Route

        routes = [
            Route(_MESSAGES, self._message, methods=["POST"]),
            Route(_COUNT, self._count, methods=["POST"]),
            Route(_BATCHES, self._submit, methods=["POST"]),
            Route(_BATCHES + "/{id}", self._poll),
            Route(_BATCHES + "/{id}/results", self._results),
        ]
        config = uvicorn.Config(
            Starlette(routes=routes), host="127.0.0.1", port=0, log_level="critical", lifespan="off", ws="none"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        end = time.monotonic() + _START_S
        while not self._server.started and time.monotonic() < end:
            time.sleep(0.005)
        self.url = f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()

    async def _taken(self, http: HttpRequest) -> Request:
        raw = await http.body()
        request = Request(http.url.path, json.loads(raw) if raw else {}, dict(http.headers))
        self.requests.append(request)
        return request

    def _react(self, request: Request) -> Answer | Failure:
        if callable(self._script):
            return self._script(request)
        with self._lock:
            at, self._next = self._next, self._next + 1
        if at >= len(self._script):
            return OVER
        reaction = self._script[at]
        return reaction(request) if callable(reaction) else reaction

    async def _message(self, http: HttpRequest) -> Response:
        from starlette.responses import JSONResponse, StreamingResponse

        request = await self._taken(http)
        reaction = self._react(request)
        if isinstance(reaction, Failure):
            return _error(reaction)
        if request.body.get("stream") is not True:
            return JSONResponse(message_of(reaction, request.body))
        return StreamingResponse(_events(reaction, request.body), headers={"request-id": "req_scripted"})

    async def _count(self, http: HttpRequest) -> Response:
        from starlette.responses import JSONResponse

        request = await self._taken(http)
        return JSONResponse({"input_tokens": _estimated(request.body)})

    async def _submit(self, http: HttpRequest) -> Response:
        from starlette.responses import JSONResponse

        request = await self._taken(http)
        asked = cast("list[dict[str, JSON]]", request.body["requests"])
        batch = _Batch(f"msgbatch_{len(self._batches) + 1}", self.url, self._batch_polls)
        for item in asked:
            params = cast("dict[str, JSON]", item["params"])
            reaction = self._react(Request(request.path, params, request.headers))
            batch.results.append({"custom_id": item["custom_id"], "result": _result(reaction, params)})
        self._batches.append(batch)
        return JSONResponse(batch.state())

    async def _poll(self, http: HttpRequest) -> Response:
        return await self._of_batch(http, lambda batch: batch.polled())

    async def _results(self, http: HttpRequest) -> Response:
        from starlette.responses import PlainTextResponse

        return await self._of_batch(
            http, lambda batch: PlainTextResponse("".join(json.dumps(r) + "\n" for r in reversed(batch.results)))
        )

    async def _of_batch(self, http: HttpRequest, answer: Callable[[_Batch], JSON | Response]) -> Response:
        from starlette.responses import JSONResponse, Response

        await self._taken(http)
        batch = next((b for b in self._batches if b.id == http.path_params["id"]), None)
        if batch is None:
            return _error(Failure(404, "not_found_error", "there is no such batch"))
        answered = answer(batch)
        return answered if isinstance(answered, Response) else JSONResponse(answered)


class _Batch:
    def __init__(self, ident: str, url: str, polls: int) -> None:
        self.id = ident
        self.results: list[dict[str, JSON]] = []
        self._url = f"{url}{_BATCHES}/{ident}/results"
        self._left = polls

    def polled(self) -> JSON:
        self._left -= 1
        return self.state()

    def state(self) -> dict[str, JSON]:
        done = self._left <= 0
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": "ended" if done else "in_progress",
            "results_url": self._url if done else None,
        }


def message_of(answer: Answer, body: Mapping[str, JSON]) -> dict[str, JSON]:
    """The message that an answer is, as the API sends it in one piece."""
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": list(answer.blocks),
        "stop_reason": answer.stop_reason,
        "stop_sequence": None,
        "usage": dict(answer.usage) if answer.usage is not None else counted(answer, _estimated(body)),
    }


def _estimated(body: Mapping[str, JSON]) -> int:
    return prompt_tokens(body, lookup(str(body.get("model") or "")))


def counted(answer: Answer, input_tokens: int, read: int = 0, written: int = 0) -> dict[str, JSON]:
    """The usage of an answer: what was sent and read from the cache, the answer itself by estimate."""
    output = _estimated({"messages": [{"role": "assistant", "content": list(answer.blocks)}]})
    return {
        "input_tokens": input_tokens,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": output,
    }


def _error_body(error_type: str, message: str, details: Mapping[str, JSON] | None = None) -> dict[str, JSON]:
    error: dict[str, JSON] = {"type": error_type, "message": message}
    if details is not None:
        error["details"] = dict(details)
    return {"type": "error", "error": error, "request_id": "req_scripted"}


def _error(failure: Failure) -> Response:
    from starlette.responses import JSONResponse

    body = _error_body(failure.type, failure.message, failure.details)
    return JSONResponse(body, failure.status, {"request-id": "req_scripted", **failure.headers})


def _result(reaction: Answer | Failure, params: Mapping[str, JSON]) -> JSON:
    if isinstance(reaction, Failure):
        return {"type": "errored", "error": _error_body(reaction.type, reaction.message)}
    return {"type": "succeeded", "message": message_of(reaction, params)}


async def _events(answer: Answer, body: Mapping[str, JSON]) -> AsyncIterator[bytes]:
    whole = message_of(answer, body)
    usage = cast("dict[str, JSON]", whole["usage"])
    yield _event(
        "message_start", message={**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    )
    for _ in range(answer.pings):
        await asyncio.sleep(answer.pause_s)
        yield _event("ping")
    for at, block in enumerate(answer.blocks):
        begun, deltas = _split(block, answer.piece_chars)
        yield _event("content_block_start", index=at, content_block=begun)
        for delta in deltas:
            await asyncio.sleep(answer.pause_s)
            yield _event("content_block_delta", index=at, delta=delta)
        if not answer.breaks and answer.error is None:
            yield _event("content_block_stop", index=at)
    if answer.breaks:
        raise ConnectionResetError("scripted")
    if answer.error is not None:
        yield _event("error", **_error_body(*answer.error))
        return
    yield _event("message_delta", delta={"stop_reason": answer.stop_reason, "stop_sequence": None}, usage=usage)
    yield _event("message_stop")


def _event(kind: str, **fields: JSON) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def _split(block: Block, chars: int) -> tuple[Block, list[Block]]:
    """A block as a stream begins it, and the pieces that fill it."""
    match block.get("type"):
        case "text" | "thinking" as kind:
            told = str(block.get(kind) or "")
            deltas: list[Block] = [{"type": f"{kind}_delta", kind: piece} for piece in _pieces(told, chars)]
            if kind == "thinking" and block.get("signature"):
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            return {**block, kind: ""}, deltas
        case "tool_use":
            given = json.dumps(block.get("input"))
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": piece} for piece in _pieces(given, chars)
            ]
        case "compaction":
            rest = {key: value for key, value in block.items() if key != "type"}
            return {"type": "compaction", "content": ""}, [{"type": "compaction_delta", **rest}]
        case _:
            return block, []


def _pieces(told: str, chars: int) -> list[str]:
    return [told[at : at + chars] for at in range(0, len(told), chars)]
