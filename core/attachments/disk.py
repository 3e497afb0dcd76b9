"""The disk as scans see it: text files of a few folders, and nothing that a hostile project could point to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from core.redact.paths import may_hold_secrets
from core.transcript.ordinary import open_ordinary

MOST_BYTES = 1 << 20
"""No memory file is longer, and no diff of a longer file is read."""
_MOST_NAMES = 1_000


class Disk:
    """Looks at what lies below `roots`, links resolved; implements `Files`."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = [Path(os.path.realpath(root)) for root in roots]

    def mtime_ns(self, path: str) -> int | None:
        """When a file was changed last."""
        try:
            return os.stat(path).st_mtime_ns if self._is_inside(path) else None
        except (OSError, ValueError):
            return None

    def read(self, path: str) -> str | None:
        """A text file; None for secrets by name, binaries, what is too large, and what lies elsewhere."""
        if not self._is_inside(path):
            return None
        real = os.path.realpath(path)
        if any(may_hold_secrets(p.replace(os.sep, "/")) for p in (path, real)):
            return None
        try:
            with open_ordinary(real) as file:
                raw = file.read(MOST_BYTES + 1)
        except (OSError, ValueError):
            return None
        if len(raw) > MOST_BYTES or b"\0" in raw:
            return None
        return raw.decode("utf-8-sig", "replace").replace("\r\n", "\n")

    def names(self, folder: str) -> Sequence[str]:
        """The names in a folder."""
        try:
            return sorted(os.listdir(folder))[:_MOST_NAMES] if self._is_inside(folder) else ()
        except (OSError, ValueError):
            return ()

    def _is_inside(self, path: str) -> bool:
        try:
            real = Path(os.path.realpath(path))
        except (OSError, ValueError):
            return False
        return any(real.is_relative_to(root) for root in self._roots)
