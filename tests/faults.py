"""Fault injection: what a full disk, a refusing system or a kill does at each step of a write.

A step is one of the calls below; they are counted from 1 on, in the order in which they are made.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from core.errors import FoldmarkError

FAILING = ("open", "mkdir", "write", "fsync", "fchmod", "link", "replace")
"""Calls that a disk or a system can refuse.  Removing is not among them: that is how a failure is tidied up."""
KILLING = (*FAILING, "unlink", "ftruncate")


def outcomes(run: Callable[[], object], error: int, half: bool = False) -> Iterator[FoldmarkError | None]:
    """Run `run` once for each of its steps, that step failing with `error`, and yield what it raised.

    With `half`, a write does half of its work before the disk is full.
    """
    for at in itertools.count(1):  # pragma: no branch
        raised = None
        with failing(at, error, half) as steps:
            try:
                run()
            except FoldmarkError as exception:
                raised = exception
        if len(steps) < at:
            return
        yield raised


@contextlib.contextmanager
def failing(at: int, error: int, half: bool = False) -> Iterator[list[str]]:
    """Let step `at` fail with `error`; yields the names of the steps, as they are made."""
    steps: list[str] = []
    full = False

    def before(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        nonlocal full
        steps.append(name)
        halved = half and name == "write"
        if (full and halved) or (len(steps) == at and not halved):
            raise OSError(error, os.strerror(error))
        if len(steps) == at:
            full = True
            return args[0], args[1][: len(args[1]) // 2]
        return args

    with _patched(FAILING, before):
        yield steps


def kills(run: Callable[[], object]) -> Iterator[int]:
    """Run `run` once for each of its steps in a process of its own that is killed (SIGKILL) there; yields the step.

    A write is half done when the process dies, any other call not at all.
    """
    for at in itertools.count(1):  # pragma: no branch
        if not _dies(at, run):
            return
        yield at


def _dies(at: int, run: Callable[[], object]) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking beside a worker thread of another test
        child = os.fork()
    if not child:  # pragma: no cover
        _die(at, run)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.waitstatus_to_exitcode(status) == 0
    return False


def _die(at: int, run: Callable[[], object]) -> None:  # pragma: no cover
    steps: list[str] = []
    real_write = os.write

    def before(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        steps.append(name)
        if len(steps) == at:
            if name == "write":
                real_write(args[0], args[1][: len(args[1]) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return args

    code = 1
    try:
        with _patched(KILLING, before):
            run()
        code = 0
    finally:
        os._exit(code)


@contextlib.contextmanager
def _patched(names: tuple[str, ...], before: Callable[[str, tuple[Any, ...]], tuple[Any, ...]]) -> Iterator[None]:
    def wrapped(name: str) -> Callable[..., Any]:
        real = getattr(os, name)
        return lambda *args, **kwargs: real(*before(name, args), **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(os, name, wrapped(name))
        yield
