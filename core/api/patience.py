"""Trying again: which failures, how long to wait, and when to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from core.errors import ApiError, FailureKind

_T = TypeVar("_T")
_WAITED_FOR: frozenset[FailureKind] = frozenset({"rate", "overloaded", "network"})
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 30.0
_SLICE_S = 0.5
"""How long a cancelled wait goes on at most."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long one call may take, all its tries and waits together, and how often it is tried."""

    deadline_s: float = 600.0
    """What the vendor's own client gives a request."""
    silence_s: float = 120.0
    """How long a stream may say nothing, pings included: it is how much later than the deadline a call can end."""
    tries: int = 5


class Attempts:
    """One call, tried until it works, its failure is final, or its time is over.

    `clock` gives seconds that only grow; `cancelled` is asked before each try, while waiting, and by whoever reads
    a stream, through `check`.
    """

    def __init__(
        self,
        patience: Patience,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        cancelled: Callable[[], bool],
    ) -> None:
        self._patience, self._clock, self._sleep, self._cancelled = patience, clock, sleep, cancelled
        self._end = clock() + patience.deadline_s

    @property
    def left_s(self) -> float:
        """The time that is left."""
        return self._end - self._clock()

    def check(self) -> None:
        """Raises `ApiError` once the call is cancelled or out of time."""
        if self._cancelled():
            raise ApiError("cancelled", "the call was cancelled")
        if self.left_s <= 0:
            raise ApiError(
                "deadline",
                f"the model gave no whole answer within {self._patience.deadline_s:g} seconds",
                "give it more time (api_deadline_s), or a smaller request",
            )

    def run(self, call: Callable[[], _T], may_repeat: Callable[[], bool] = lambda: True) -> _T:
        """What the call gives; raises its last `ApiError`, at once if the wait for the next try were too long."""
        for n in range(self._patience.tries - 1):
            self.check()
            try:
                return call()
            except ApiError as error:
                wait_s = _wait_s(error, n)
                if error.kind not in _WAITED_FOR or not may_repeat() or wait_s >= self.left_s:
                    raise
            self._wait(wait_s)
        self.check()
        return call()

    def _wait(self, seconds: float) -> None:
        end = self._clock() + seconds
        while (left_s := end - self._clock()) > 0:
            self.check()
            self._sleep(min(left_s, _SLICE_S))


def _wait_s(error: ApiError, failures: int) -> float:
    """What the API asks for; else twice as long after each failure."""
    if error.retry_after_s is not None:
        return max(0.0, error.retry_after_s)
    return min(_FIRST_WAIT_S * float(2**failures), _LONGEST_WAIT_S)
