"""Core functions in threads: progress while they run, and a way to stop them that leaves nothing half done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from threading import Event
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_process

from core.errors import WrongPattern
from core.service.session import Session, aopened
from core.transcript.projects import SessionFile
from mcp_server.answers import told
from mcp_server.config import Ctx, config_of

BEAT_S = 2.0
"""How often progress is reported: hosts end calls that stay silent for minutes, and show nothing newer than this."""
PATTERN_S = 20.0
"""How long a search by an expression may take: all of the largest sessions is read in less."""

if TYPE_CHECKING:
    from core.context.tokens.window import Measuring

T = TypeVar("T")


async def in_thread(ctx: Ctx, label: str, function: Callable[[], T], stop: Event | None = None) -> T:
    """What the function returns; its errors are told to the caller.

    When the call is cancelled, `stop` is set, and the function is waited for: it either gives up before it writes, or
    has written all.
    """
    return await _worked(ctx, label, stop or Event(), lambda: anyio.to_thread.run_sync(function))


async def in_session(
    ctx: Ctx,
    label: str,
    file: SessionFile,
    read: Callable[[Session], T],
    *,
    whole: bool = False,
    measuring: Measuring | None = None,
) -> T:
    """What the function reads of a session; a call that is cancelled while the session is opened ends there."""
    config = config_of(ctx)

    async def work() -> T:
        sizes = measuring or config.measuring
        async with aopened(file, whole=whole, inside=config.caller.inside, measuring=sizes) as found:
            return await anyio.to_thread.run_sync(read, found)

    return await _worked(ctx, label, Event(), work)


async def in_process(ctx: Ctx, label: str, function: Callable[..., T], *args: object) -> T:
    """What the function returns that is run in a process of its own, which is ended when it takes too long.

    For regular expressions: some take for ever, cannot be interrupted, and hold up every thread.
    """

    async def work() -> T:
        try:
            with anyio.fail_after(PATTERN_S):
                return await anyio.to_process.run_sync(function, *args, cancellable=True)
        except TimeoutError:
            raise WrongPattern("the expression takes too long on this session", "take a simpler one") from None

    return await _worked(ctx, label, Event(), work)


async def _worked(ctx: Ctx, label: str, stop: Event, work: Callable[[], Awaitable[T]]) -> T:
    """What the work comes to; meanwhile the caller hears that it goes on."""
    outcome: list[T] = []
    failure: list[Exception] = []
    until_done = anyio.CancelScope()
    async with anyio.create_task_group() as group:
        group.start_soon(_beat, ctx, label, stop, until_done)
        try:
            outcome.append(await work())
        except Exception as error:  # noqa: BLE001 (raised again outside of the group, which would wrap it)
            failure.append(error)
        until_done.cancel()
    with told():
        if failure:
            raise failure[0]
    return outcome[0]


async def _beat(ctx: Ctx, label: str, stop: Event, until_done: anyio.CancelScope) -> None:
    """Says every now and then that the work goes on, until it is done or nobody wants it any more."""
    beats = 0
    try:
        with until_done:
            while True:
                await ctx.report_progress(beats, message=label)
                await anyio.sleep(BEAT_S)
                beats += 1
    finally:
        stop.set()
