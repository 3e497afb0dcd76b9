"""A disk of a few texts, for scans to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class FakeFiles:
    """Files by absolute path; each has its time, 1 unless it was set."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = dict(texts)
        self.times: dict[str, int] = {}
        self.reads: list[str] = []

    def mtime_ns(self, path: str) -> int | None:
        return self.times.get(path, 1) if path in self.texts else None

    def read(self, path: str) -> str | None:
        self.reads.append(path)
        return self.texts.get(path)

    def names(self, folder: str) -> Sequence[str]:
        inside = [path[len(folder) + 1 :] for path in self.texts if path.startswith(folder + "/")]
        return sorted({name.split("/")[0] for name in inside})
