"""Answers one hook of a host: JSON on standard input, what the host understands on standard output.

It never fails: a fault ends in no output, exit code 0 and a line in a private log, because a host takes
an exit code of 2 for a veto, and shows any other to the person.  And it is quick, which is why it knows no `click`.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.errors import SettingsError
    from core.settings import Settings

LOG = "hooks.log"
LOG_BYTES = 64 << 10
"""A longer log begins anew."""


def run(event: str) -> int:
    """Answer `event` with what there is on standard input; always 0."""
    try:
        from core.service.hooks import answer

        raw = sys.stdin.buffer.read()
        if event == "Stop":
            _keep_notes(raw)
        text = answer(event, raw, partial(_settings, event))
        with open(1, "wb", closefd=False) as out:  # unlike `sys.stdout` it is not flushed again at the end
            out.write(text.encode("utf-8", "replace"))
    except Exception as error:  # noqa: BLE001 (no fault of ours may stop a host)
        _log(event, error)
    return 0


def _keep_notes(raw: bytes) -> None:
    """Bring the notes of the session up to date where that is due, in a process that nobody waits for."""
    import json
    from subprocess import DEVNULL, Popen

    from cli.process import PROGRAM

    transcript = json.loads(raw)["transcript_path"]
    if os.path.isfile(transcript) and os.path.isabs(transcript):  # what is no absolute path may be an option
        command = [sys.executable, str(PROGRAM), "memory", "refresh", transcript]
        # A host reads what a hook prints to its end: the new process must not hold that open.
        Popen(command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True)


def _settings(event: str) -> Settings:
    """The settings of this process; what is wrong is left out, and logged where an answer may depend on it."""
    from cli.process import settings
    from core.service.hooks import HEEDED

    faults: list[SettingsError] = []
    found = settings(faults)
    for fault in faults:
        if fault.key in ("", *HEEDED):  # "": a file that cannot be read
            _log(event, fault)
    return found


def _log(event: str, error: Exception) -> None:
    """One line: when, which event, what happened; without secrets, and readable for its owner alone.

    A log that cannot be written is no fault.
    """
    with suppress(Exception):
        from datetime import UTC, datetime

        from cli.logs import write_log
        from core.redact.text import redact

        said = " ".join(redact(f"{type(error).__name__}: {error}").split())[:1_000]
        write_log(LOG, f"{datetime.now(UTC).isoformat(timespec='seconds')} {event} {said}\n", LOG_BYTES)
