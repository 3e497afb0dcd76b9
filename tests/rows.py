"""Rows with any parent, rewinds and damage, which `core.testing.Transcript` does not write; for property tests, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
from hypothesis import strategies as st

from core.model import JSON

Row = dict[str, JSON]
SESSION = "11111111-1111-4111-8111-111111111111"


@dataclass
class Rows:
    """Writes rows as the client does; every method continues from `tip`, the newest row."""

    rows: list[Row] = field(default_factory=list)
    tip: str | None = None
    _count: int = 0

    def data(self) -> bytes:
        """The file."""
        return b"".join(self.lines())

    def lines(self) -> list[bytes]:
        """The rows with their line ends."""
        return [msgspec.json.encode(row) + b"\n" for row in self.rows]

    def number(self) -> int:
        """A number that nothing else has."""
        self._count += 1
        return self._count

    def uuids(self) -> list[str]:
        """The ids of all rows, in file order."""
        return [str(row["uuid"]) for row in self.rows if "uuid" in row]

    def add(self, type_: str, parent: str | None = None, **fields: JSON) -> str:
        """A row on the chain; it becomes the tip."""
        n = self.number()
        uuid = f"00000000-0000-4000-8000-{n:012x}"
        self.rows.append(
            {
                "parentUuid": self.tip if parent is None else parent or None,
                "isSidechain": False,
                "type": type_,
                "uuid": uuid,
                "timestamp": f"2026-03-01T10:{n // 60 % 60:02d}:{n % 60:02d}.000Z",
                "sessionId": SESSION,
                **fields,
            }
        )
        self.tip = uuid
        return uuid

    def user(self, content: JSON, parent: str | None = None, **fields: JSON) -> str:
        """A user row."""
        return self.add("user", parent, message={"role": "user", "content": content}, **fields)

    def assistant(self, block: JSON, response: str, **fields: JSON) -> str:
        """One block of a response, in a row of its own."""
        message: JSON = {"id": response, "role": "assistant", "model": "claude-opus-4-6", "content": [block]}
        return self.add("assistant", None, message=message, **fields)

    def prompt(self, text: str) -> None:
        """A prompt and its answer."""
        self.user(text)
        self.assistant({"type": "text", "text": f"about {text}"}, f"msg_{self.number()}")

    def calls(self, count: int, order: int = 0, answered: int = 99) -> None:
        """A response with parallel calls: each result hangs off its own call, the next row off the last result."""
        response = f"msg_{self.number()}"
        self.assistant({"type": "thinking", "thinking": "hm", "signature": "c2ln"}, response)
        made = []
        for _ in range(count):
            call = f"toolu_{self.number()}"
            row = self.assistant({"type": "tool_use", "id": call, "name": "Bash", "input": {"n": call}}, response)
            made.append((call, row))
        for k in range(min(count, answered)):
            call, row = made[(k + order) % count]
            self.tip = row
            self.user([{"type": "tool_result", "tool_use_id": call, "content": f"of {call}"}])

    def boundary(self, **metadata: JSON) -> str:
        """A boundary, a root of its own."""
        before = self.tip
        return self.add(
            "system",
            parent="",
            subtype="compact_boundary",
            logicalParentUuid=before,
            compactMetadata={"trigger": "manual", "preTokens": 1000, **metadata},
        )

    def summary(self) -> str:
        """The summary behind a boundary."""
        return self.user("Summary of what was.", isCompactSummary=True)

    def compaction(self) -> None:
        """A boundary and its summary, nothing kept."""
        self.boundary()
        self.summary()

    def keeping_compaction(self, keep: int) -> None:
        """A boundary that names the newest rows as kept; the next row hangs off the last of them."""
        kept = self._newest(keep)
        boundary = self.boundary()
        summary = self.summary()
        uuids: JSON = list(kept)
        named: JSON = {"anchorUuid": summary, "uuids": uuids, "allUuids": uuids}
        row = next(r for r in self.rows if r.get("uuid") == boundary)
        if kept:
            row["compactMetadata"] = {"trigger": "manual", "preservedMessages": named}
            self.tip = kept[-1]

    def repeating_compaction(self, keep: int) -> None:
        """A boundary behind which the newest rows stand again, with their ids."""
        kept = self._newest(keep)
        rows = {str(r["uuid"]): r for r in self.rows if "uuid" in r}
        self.compaction()
        for uuid in kept:
            self.rows.append({**rows[uuid], "parentUuid": self.tip})
            self.tip = uuid

    def _newest(self, count: int) -> list[str]:
        """The newest rows of the way from the tip to the root."""
        rows = {str(r["uuid"]): r for r in self.rows if "uuid" in r}
        path: list[str] = []
        at = self.tip
        while at is not None and len(path) < count and rows[at].get("subtype") != "compact_boundary":
            path.append(at)
            parent = rows[at]["parentUuid"]
            at = parent if isinstance(parent, str) and parent in rows and parent not in path else None
        return path[::-1]

    def sidechain(self) -> None:
        """A subagent's rows in the same file."""
        tip = self.tip
        self.tip = None
        self.user("Look it up.", isSidechain=True)
        self.assistant({"type": "text", "text": "Found."}, f"msg_{self.number()}", isSidechain=True)
        self.tip = tip

    def rewind(self, place: int) -> None:
        """Goes on from an older row of the conversation itself."""
        uuids = [str(row["uuid"]) for row in self.rows if "uuid" in row and not row["isSidechain"]]
        self.tip = uuids[place % len(uuids)]

    def note(self, kind: str) -> None:
        """A row off the chain."""
        row: Row = {"type": kind, "sessionId": SESSION}
        if kind == "last-prompt":
            row["leafUuid"] = self.tip
        self.rows.append(row)


STEPS: dict[str, Callable[[Rows, int], None]] = {
    "prompt": lambda t, n: t.prompt(f"question {n}"),
    "calls": lambda t, n: t.calls(1 + n % 3, n, answered=99 if n % 5 else 0),
    "progress": lambda t, _n: void(t.add("progress", data={"type": "bash_progress"})),
    "attachment": lambda t, _n: void(t.add("attachment", attachment={"type": "task_reminder"})),
    "system": lambda t, _n: void(t.add("system", subtype="turn_duration")),
    "compaction": lambda t, _n: t.compaction(),
    "keeping": lambda t, n: t.keeping_compaction(n % 5),
    "repeating": lambda t, n: t.repeating_compaction(n % 5),
    "rewind": lambda t, n: t.rewind(n),
    "sidechain": lambda t, _n: t.sidechain(),
    "dangling": lambda t, n: void(t.user(f"lost {n}", parent=f"99999999-0000-4000-8000-{n:012x}")),
    "last-prompt": lambda t, _n: t.note("last-prompt"),
    "mode": lambda t, _n: t.note("mode"),
}


def void(_: object) -> None:
    """Drops a value."""


@st.composite
def any_rows(draw: st.DrawFn, steps: tuple[str, ...] = tuple(STEPS), most: int = 14) -> Rows:
    """Conversations that a client could have written."""
    transcript = Rows()
    transcript.prompt("the first")
    for name, n in draw(st.lists(st.tuples(st.sampled_from(steps), st.integers(0, 40)), max_size=most)):
        STEPS[name](transcript, n)
    return transcript


def _pretty(line: bytes, _n: int) -> bytes:
    try:
        return msgspec.json.format(line, indent=2) + b"\n"
    except msgspec.DecodeError:
        return line


def _torn(line: bytes, n: int) -> bytes:
    return line[: n % max(len(line), 1)]


DAMAGE: tuple[Callable[[bytes, int], bytes], ...] = (
    lambda line, _n: line.rstrip(b"\n"),  # joined with the next
    _torn,  # spliced with the next
    lambda line, n: _torn(line, n) + b"\n",
    lambda _line, _n: b"",
    lambda line, _n: line + line,
    lambda line, n: b"\0" * (n % 40) + line,
    lambda line, _n: b"\xef\xbb\xbf" + line.replace(b"\n", b"\r\n"),
    lambda line, _n: b"\n \t\nnull\n[]\n{}\n" + line,
    lambda line, _n: b"<<<<<<< garbage\n}\n" + line,
    _pretty,
    lambda line, _n: line.replace(b"question", b"\xff\xfe \\ud800 \xe2\x80\xa8"),
    lambda line, _n: line.replace(b'"uuid":"', b'"uuid":5,"was":"'),
)


@st.composite
def damaged(draw: st.DrawFn, steps: tuple[str, ...] = tuple(STEPS)) -> bytes:
    """Files of such conversations after a crash, two writers, an editor."""
    lines = draw(any_rows(steps)).lines()
    for place, kind, n in draw(
        st.lists(st.tuples(st.integers(0, 60), st.sampled_from(DAMAGE), st.integers(0, 400)), max_size=4)
    ):
        at = place % len(lines)
        lines[at] = kind(lines[at], n)
    data = b"".join(lines)
    return data[: draw(st.integers(max(0, len(data) - 300), len(data)))] if draw(st.booleans()) else data
