"""Logs that their owner alone may read."""

from __future__ import annotations

import os
from pathlib import Path


def write_log(name: str, text: str, most_bytes: int = 0) -> Path:
    """Append to a log; one that is longer than `most_bytes` begins anew.  Raises OSError, StorageError."""
    from platformdirs import user_log_path

    from core.transcript.writer import make_private

    path = user_log_path("foldmark", appauthor=False) / name
    make_private(path.parent)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(fd).st_size > most_bytes:
            os.ftruncate(fd, 0)
        os.write(fd, text.encode("utf-8", "backslashreplace"))
    finally:
        os.close(fd)
    return path
