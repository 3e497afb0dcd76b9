"""How much work a function does, counted and not timed: the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def operations(work: Callable[[], object]) -> int:
    """How many bytecode instructions run until the function returns."""
    count = 0

    def trace(frame: FrameType, event: str, _argument: Any) -> Callable[..., Any]:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def grows_linearly(work_of: Callable[[int], Callable[[], object]], size: int = 100) -> bool:
    """Whether twice the input is no more than two and a half times the work; `work_of` makes the input."""
    return operations(work_of(2 * size)) <= 2.5 * operations(work_of(size))
