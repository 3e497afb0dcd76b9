"""Where the installed command starts; `python -m foldmark` does the same.

The program's packages have common names.  They are imported here, from this file's own folder, before anything
else can be found under those names: a `core/` or `cli/` of the user on PYTHONPATH is never run.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` wraps: that takes 4 ms to load

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # nothing is begun: end without a traceback

import gc
import os
import sys
from os.path import abspath, dirname
from typing import NoReturn

_HOME = dirname(abspath(__file__))
sys.path.insert(0, _HOME)
try:
    import cli
    import core
    import mcp_server
finally:
    sys.path.remove(_HOME)


def main() -> None:
    """Run the command line and leave with its exit code: 0 done, 1 something failed, 2 wrong usage."""
    # A command is short: with its default threshold the collector walks all rows of a large file again and again.
    gc.set_threshold(100_000, 50, 50)
    if _is_hook(sys.argv[1:]):
        from cli.hook import run as answer

        _leave(answer(sys.argv[2]))
    from cli.main import run

    _leave(run(sys.argv[1:]))


def _leave(code: int) -> NoReturn:
    """End at once: the outputs are written, and to take all that was read apart first takes a tenth of a second."""
    os._exit(code)


def _is_hook(args: list[str]) -> bool:
    """Whether a host waits for a hook's answer: the whole command line takes longer to load than that may."""
    return (
        len(args) == 2 and args[0] == "hook" and args[1].isalpha() and sys.stdin is not None and not sys.stdin.isatty()
    )


if __name__ == "__main__":
    main()
