"""Whatever a file holds that is no JSON of its kind, it is passed over, or refused, as if it were torn."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from core.context.decisions import Seen
from core.context.tokens.models import load
from core.errors import Damaged, SettingsError
from core.memory.files import MemoryFiles, State
from core.memory.markdown import parse
from core.service.past_decisions import decided
from core.service.session import Session
from core.service.sessions import list_sessions
from core.testing import Transcript
from core.transcript.documents import record_of, record_path
from core.transcript.listing import describe
from core.transcript.live import open_sessions
from core.transcript.projects import session_file
from core.transcript.reader import open_log
from core.transcript.records import find_records, first_record
from core.transcript.store import INDEX, Store
from core.turn.breaker import Breaker
from core.turn.journal import Journal

NESTED = b"[" * 1_500 + b"]" * 1_500
KINDS = pytest.mark.parametrize("inside", [NESTED, b'"\xff"', b"{"], ids=["nested too deeply", "no UTF-8", "torn"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Transcript().prompt("Begin.").answer("Done.").write(tmp_path / "projects" / "p" / "s.jsonl")


def put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@KINDS
def test_a_record_that_cannot_be_read_hides_no_session(path: Path, inside: bytes) -> None:
    path.write_bytes(b'{"type":"foldmark","x":' + inside + b"}\n" + path.read_bytes())
    Transcript().prompt("Another.").write(path.with_name("t.jsonl"))

    assert first_record(path) is None
    with open_log(path, whole=True) as log:
        assert not any(placed.record for placed in find_records(log))
    assert {line.title for line in list_sessions(path.parents[2]).sessions} == {"Begin.", "Another."}


@pytest.mark.parametrize("inside", [NESTED, b"{"], ids=["nested too deeply", "torn"])
def test_a_decision_that_cannot_be_read_hides_no_other(inside: bytes) -> None:
    damaged = b'{"kind":"seen","x":' + inside + b',"ids":["b"]}'
    raws = [msgspec.Raw(raw) for raw in (damaged, msgspec.json.encode(Seen(("a",))))]

    assert decided(cast("Session", SimpleNamespace(recorded_decisions=raws))) == (Seen(("a",)),)


@KINDS
def test_what_lies_beside_a_transcript_may_be_damaged(path: Path, inside: bytes) -> None:
    beside, damaged = path.with_suffix(""), b'{"x":' + inside + b"}"
    document = path.with_suffix(".json")
    put(beside / "custom-title.json", damaged)
    put(record_path(document), damaged)
    put(beside / "tool-results" / INDEX, damaged + b"\n")
    put(beside / "session-memory" / "state.json", damaged)

    assert describe(session_file(path)).title == "Begin."
    assert record_of(document) is None
    assert Store.beside(path).bodies() == ()
    assert MemoryFiles.beside(session_file(path)).state() == State()
    assert parse(f"<!-- foldmark {damaged.decode('latin-1')} -->\n").update == 0


@KINDS
def test_what_lies_elsewhere_may_be_damaged(tmp_path: Path, inside: bytes) -> None:
    damaged = b'{"x":' + inside + b"}"
    put(tmp_path / "sessions" / "1.json", damaged)
    breaker = Breaker(tmp_path, "s")
    put(breaker.path, damaged + b"\n")

    assert open_sessions(tmp_path) == {}
    assert breaker.reasons == [""]
    with pytest.raises(Damaged):
        Journal.load(damaged + b"\n")
    with pytest.raises(SettingsError):
        load(put(tmp_path / "models.json", damaged))
