"""Documents that Foldmark wrote: the record beside them, and the way back."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import Changed, FoldmarkError, InputError, WriteFailed
from core.transcript import documents
from core.transcript.documents import record_of, record_path, undo, write_document
from core.transcript.records import Record, Source
from core.transcript.store import Store
from tests.disk import tree
from tests.faults import outcomes

DATA = b'{"messages": []}\n'


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "docs" / "chat.json"
    path.parent.mkdir()
    path.write_bytes(b"the conversation")
    return path


@pytest.fixture
def document(source: Path) -> Path:
    """A document with a store."""
    path = source.with_name("chat.compacted-1.json")
    Store.beside(path).put("call", "output")
    write_document(path, record_for(source), DATA)
    return path


def record_for(source: Path) -> Record:
    return Record(op="compact", id="1", session_id="s", source=Source(str(source), "chat", source.stat().st_size))


def test_the_record_says_what_was_written(source: Path, document: Path) -> None:
    assert document.read_bytes() == DATA
    record = record_of(document)
    assert record is not None
    assert (record.op, record.size, record.source.path) == ("compact", len(DATA), str(source))


def test_undo_removes_document_record_and_store(source: Path, document: Path) -> None:
    assert undo(document, source.parent.parent / "locks").removed
    assert tree(source.parent) == {source.name: b"the conversation"}
    assert [path.name for path in source.parent.iterdir()] == [source.name]


def test_undo_through_a_link_removes_what_it_leads_to(tmp_path: Path, source: Path, document: Path) -> None:
    link = tmp_path / "elsewhere.json"
    link.symlink_to(document)
    assert record_of(link) == record_of(document)
    assert undo(link, tmp_path / "locks").removed
    assert tree(source.parent) == {source.name: b"the conversation"}


def newer(record: Path) -> None:
    record.write_bytes(record.read_bytes().replace(b'"version":1', b'"version":2'))


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda _, document: document.write_bytes(DATA + b" "), Changed),
        (lambda source, _: source.unlink(), InputError),
        (lambda _, document: record_path(document).write_bytes(b"{"), InputError),
        (lambda _, document: record_path(document).unlink(), InputError),
        (lambda _, document: newer(record_path(document)), InputError),
    ],
)
def test_what_is_not_as_it_was_is_left_alone(
    source: Path, document: Path, spoil: Callable[[Path, Path], object], error: type[FoldmarkError]
) -> None:
    spoil(source, document)
    before = tree(source.parent)
    with pytest.raises(error):
        undo(document, source.parent.parent / "locks")
    assert tree(source.parent) == before


def test_a_transcript_has_its_record_in_it(document: Path) -> None:
    assert record_of(document.with_suffix(".jsonl")) is None


def test_a_document_that_goes_away_meanwhile_is_an_error(
    source: Path, document: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "refuse_only_copy", lambda path, _: path.unlink())
    with pytest.raises(WriteFailed):
        undo(document, source.parent.parent / "locks")


@pytest.mark.parametrize("half", [True, False])
def test_whatever_fails_both_are_there_or_neither(source: Path, half: bool) -> None:
    path = source.with_name("chat.compacted-1.json")
    before = tree(source.parent)

    def write() -> None:
        write_document(path, record_for(source), DATA)

    for outcome in outcomes(write, errno.ENOSPC, half):
        if outcome:
            assert isinstance(outcome, WriteFailed)
            assert tree(source.parent) == before
        else:
            assert path.read_bytes() == DATA
            undo(path, source.parent.parent / "locks")


def test_what_a_killed_run_left_is_written_over_and_what_another_wrote_is_not(source: Path) -> None:
    path = source.with_name("chat.compacted-1.json")
    record_path(path).parent.mkdir()
    record_path(path).write_bytes(b"half")
    write_document(path, record_for(source), DATA)
    before = tree(source.parent)
    with pytest.raises(WriteFailed):
        write_document(path, record_for(source), DATA)
    assert tree(source.parent) == before
