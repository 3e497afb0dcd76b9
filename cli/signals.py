"""Ends a command alike on Ctrl-C and when it is told to (SIGTERM, as timers do): with its tidying up, exit code 130."""

from __future__ import annotations

import _thread
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)
_SOON_S = 0.02


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """Raise KeyboardInterrupt for both signals; yields the list of those that came.

    A library may raise an error of its own in the place of the exception, or swallow it; the list tells.
    """
    came: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in _NUMBERS}
    hook = sys.unraisablehook
    try:
        for number, handler in before.items():
            if handler not in (signal.SIG_IGN, None):  # whoever started this has it run on, as `nohup` does
                signal.signal(number, interrupt)
        sys.unraisablehook = _again
        yield came
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)


def leave_to_others() -> None:
    """Give both signals back: a server has a way of its own to end."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _again(lost: sys.UnraisableHookArgs) -> None:
    """Interrupt once more where it came at a moment, such as in a finalizer, at which nothing can be raised."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        again = Timer(_SOON_S, _thread.interrupt_main)  # not here: nothing can be raised in this hook either
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(lost)
