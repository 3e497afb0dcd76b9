"""The Messages API through the vendor's SDK: streamed, with our own deadline, retries and cancelling.

The SDK signs, connects and reads the stream.  It does not retry (it would wait as long as the server says, past every
deadline), and bodies go out as they are: what it does not know yet is sent and read all the same.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import msgspec

from core.api.endpoint import Reply
from core.api.failures import classify
from core.api.patience import Attempts, Patience
from core.api.payload import betas, count_payload
from core.api.stream import StreamedMessage
from core.errors import ApiError
from core.model import JSON, UNDECODABLE, Usage, mapping, string

if TYPE_CHECKING:
    from anthropic import Anthropic, APIStatusError
    from anthropic._client import RequestOptions

BASE_URL = "https://api.anthropic.com"
_CONNECT_S = 10.0


@dataclass(frozen=True, slots=True)
class Access:
    """Where the API is, and what opens it: a key, or the token of a gateway."""

    api_key: str = field(default="", repr=False)
    auth_token: str = field(default="", repr=False)
    base_url: str = BASE_URL


class AnthropicEndpoint:
    """An endpoint of the Messages API; its connections are closed once it is not used any more.

    `clock` gives seconds that only grow; `cancelled` is looked at between two events of a stream and while waiting.
    """

    def __init__(
        self,
        access: Access,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        patience: Patience | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self._access = access
        self._clock, self._sleep, self._cancelled = clock, sleep, cancelled
        self._patience = patience or Patience()
        self._made: Anthropic | None = None

    def send(self, body: Mapping[str, JSON], on_text: Callable[[str], None] | None = None) -> Reply:
        """The answer, streamed.  A call that has handed out text is not tried again: half an answer would come twice.

        Raises `ApiError`.
        """
        said: list[bool] = []
        tries: list[StreamedMessage] = []

        def hand_out(text: str) -> None:
            said.append(True)
            if on_text is not None:
                on_text(text)

        def streamed() -> Reply:
            tries.append(StreamedMessage(hand_out))
            return self._streamed(body, tries[-1], attempts)

        attempts = self.attempts()
        try:
            reply = attempts.run(streamed, lambda: on_text is None or not said)
        except ApiError as error:
            error.usage = _charged(tries)
            raise
        return replace(reply, lost=_charged(tries[:-1]))

    def count(self, body: Mapping[str, JSON]) -> int:
        """The tokens of a request, as the API counts them.  Raises `ApiError`."""
        counted = self.call("POST", "/v1/messages/count_tokens", count_payload(body), betas(body))
        tokens = counted.get("input_tokens") if isinstance(counted, dict) else None
        if not isinstance(tokens, int):
            raise ApiError("request", "the model API gave no count")
        return tokens

    def call(self, method: str, path: str, body: Mapping[str, JSON] | None = None, beta: tuple[str, ...] = ()) -> JSON:
        """The JSON that another request of the API is answered with; tried again like a message.

        Raises `ApiError`.
        """
        attempts = self.attempts()
        return attempts.run(lambda: self._plain(method, path, body, beta, attempts))

    def attempts(self) -> Attempts:
        """The time and the tries of one call, from now on."""
        return Attempts(self._patience, self._clock, self._sleep, self._cancelled)

    def _streamed(self, body: Mapping[str, JSON], message: StreamedMessage, attempts: Attempts) -> Reply:
        client = self._client()
        from anthropic import Stream

        with (
            _failures(attempts),
            client.post(
                "/v1/messages?beta=true",
                cast_to=object,
                body={**body, "stream": True},
                options=self._options(betas(body), attempts),
                stream=True,
                stream_cls=Stream[object],
            ) as stream,
        ):
            for event in Stream.raw_events(stream.response):  # pings too: they are all that a thinking model sends
                attempts.check()
                if event.event == "error":
                    raise _in_stream(event.data, stream.response.headers)
                if event.event != "ping" and event.data:
                    message.add(mapping(cast(JSON, event.json())))
        return message.reply()

    def _plain(
        self,
        method: str,
        path: str,
        body: Mapping[str, JSON] | None,
        beta: tuple[str, ...],
        attempts: Attempts,
    ) -> JSON:
        client = self._client()
        options = self._options(beta, attempts)
        with _failures(attempts):
            if method == "GET":
                return cast(JSON, client.get(path, cast_to=object, options=options))
            return cast(JSON, client.post(path, cast_to=object, body=dict(body or {}), options=options))

    def _options(self, beta: tuple[str, ...], attempts: Attempts) -> RequestOptions:
        from anthropic import Timeout

        left_s = max(0.01, attempts.left_s)
        options: RequestOptions = {
            "timeout": Timeout(min(self._patience.silence_s, left_s), connect=min(_CONNECT_S, left_s))
        }
        if beta:
            options["headers"] = {"anthropic-beta": ",".join(beta)}
        return options

    def _client(self) -> Anthropic:
        if not (self._access.api_key or self._access.auth_token):
            raise ApiError("auth", "there is no key for the model API", "set ANTHROPIC_API_KEY")
        if self._made is None:
            from anthropic import Anthropic

            key = self._access.api_key
            self._made = Anthropic(
                api_key=key or None,
                auth_token=None if key else self._access.auth_token,
                base_url=self._access.base_url,
                max_retries=0,
            )
            # The SDK closes its connections only if the collector comes to it before it comes to the sockets.
            weakref.finalize(self, self._made.close)
        return self._made


def _charged(tries: Sequence[StreamedMessage]) -> Usage:
    return sum((message.usage for message in tries), Usage())


@contextmanager
def _failures(attempts: Attempts) -> Iterator[None]:
    """Whatever goes wrong with a call, as `ApiError`."""
    import httpx2
    from anthropic import AnthropicError, APIConnectionError, APIStatusError

    try:
        yield
    except APIStatusError as error:
        raise _of_status(error) from None
    except UnicodeEncodeError:
        raise ApiError("request", "the request holds half a character, which cannot be sent") from None
    except (APIConnectionError, httpx2.HTTPError, ValueError) as error:  # ValueError: an event that is no JSON
        attempts.check()
        cause = error.__cause__ or error
        said = str(cause) or type(cause).__name__
        raise ApiError("network", f"no whole answer from the model API: {said}", "try again later") from None
    except AnthropicError as error:
        raise ApiError("request", f"the call of the model API failed: {error}") from None


def _in_stream(data: str, headers: Mapping[str, str]) -> ApiError:
    """An error that comes after a status of 200: by its type."""
    try:
        body: JSON = msgspec.json.decode(data)
    except UNDECODABLE:
        body = {}
    error = mapping(mapping(body).get("error"))
    code = string(mapping(error.get("details")).get("error_code"))
    said, request_id = string(error.get("message")) or data, headers.get("request-id", "")
    return classify(200, string(error.get("type")), said, code=code, body=data, request_id=request_id)


def _of_status(error: APIStatusError) -> ApiError:
    return classify(
        error.status_code,
        error.type or "",
        error.api_message or error.message,
        code=error.error_code or "",
        body=str(error.body or ""),
        retry_after_s=_retry_after_s(error.response.headers),
        request_id=error.request_id or "",
    )


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """What the server asks to wait; a date, which the API does not send, is as good as nothing."""
    for name, unit in (("retry-after-ms", 1_000.0), ("retry-after", 1.0)):
        try:
            return float(headers.get(name, "")) / unit
        except ValueError:
            continue
    return None
