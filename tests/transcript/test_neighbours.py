"""Copies beside a transcript, which lean on the same stored bodies: taking one back leaves the others whole."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from core.transcript import documents
from core.transcript.neighbours import leaned_on_beside, neighbours
from core.transcript.projects import own_folder
from core.transcript.records import Record, Source
from core.transcript.store import Store
from core.transcript.undo import undo
from core.transcript.writer import append, write_new
from tests.disk import tree

ROW = b'{"type":"user","uuid":"u1"}\n'
BLOCK = b'{"type":"system","uuid":"b1"}\n'


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "docs" / "s.jsonl"
    path.parent.mkdir()
    path.write_bytes(ROW)
    return path


def record_for(source: Path, *stored: str) -> Record:
    size = source.stat().st_size
    of = Source(str(source), source.stem, size)
    return Record(op="micro", id=f"{size}", session_id="s", source=of, stored=stored)


def in_place(path: Path, call: str) -> None:
    Store.beside(path).put(call, f"the output of {call}")
    append(path, record_for(path, f"{call}.txt").row(BLOCK) + BLOCK)


def as_new(source: Path, call: str) -> Path:
    path = source.with_name("new.jsonl")
    Store.beside(path).put(call, f"the output of {call}")
    write_new(path, [record_for(source, f"{call}.txt").row(BLOCK), BLOCK])
    return path


def copy(path: Path) -> Path:
    return Path(shutil.copy2(path, path.with_suffix(".bak")))


def taken_back(path: Path) -> None:
    undo(path, path.parent / "claude", path.parents[1] / "locks")


def stored(path: Path) -> set[str]:
    return {body.id for body in Store.beside(path).bodies()}


@pytest.mark.parametrize("first", [".bak", ".jsonl"])
def test_of_two_that_were_made_one_keeps_what_it_leans_on(source: Path, first: str) -> None:
    path = as_new(source, "t1")
    second = copy(path)
    if first == ".bak":
        path, second = second, path

    taken_back(path)
    assert (path.exists(), stored(second)) == (False, {"t1"})
    taken_back(second)
    assert tree(source.parent) == {source.name: ROW}


def test_what_only_one_of_them_leans_on_goes(source: Path) -> None:
    in_place(source, "t1")
    other = copy(source)
    in_place(source, "t2")

    taken_back(source)
    assert stored(source) == {"t1"}
    taken_back(source)
    assert stored(other) == {"t1"}
    taken_back(other)
    assert tree(source.parent) == {source.name: ROW, other.name: ROW}


def test_what_stands_beside_it_and_is_no_transcript_keeps_nothing(source: Path) -> None:
    path = as_new(source, "t1")
    path.with_suffix(".html").write_text("<html>\nA report.\n</html>\n")
    path.with_suffix(".link").symlink_to(source)
    (path.parent / "new.d").mkdir()
    Store.beside(path).put("t2", "stored by a hook, which writes no record")

    assert leaned_on_beside(path) is None
    taken_back(path)
    assert not own_folder(path).exists()


def test_beside_one_that_cannot_be_read_everything_stays(source: Path) -> None:
    in_place(source, "t1")
    row = record_for(source, "t1.txt").row(BLOCK)
    newer = row.replace(b'"version":1', b'"version":99')
    source.with_suffix(".bak").write_bytes(newer + BLOCK)

    taken_back(source)
    assert source.read_bytes() == ROW
    assert stored(source) == {"t1"}


def test_a_copy_of_a_document_keeps_record_and_store(source: Path) -> None:
    path = source.with_name("s.compacted-1.json")
    Store.beside(path).put("t1", "the output")
    documents.write_document(path, record_for(source, "t1.txt"), b'{"messages": []}\n')
    other = copy(path)

    documents.undo(other, source.parent / "locks")
    assert neighbours(other) == [path]
    assert documents.record_of(path)
    assert stored(path) == {"t1"}
    documents.undo(path, source.parent / "locks")
    assert not own_folder(path).exists()
