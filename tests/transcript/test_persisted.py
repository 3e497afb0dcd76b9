from __future__ import annotations

from pathlib import Path

import pytest

from core.model import JSON
from core.testing import Transcript
from core.transcript.chain import load
from core.transcript.persisted import file_name, gone_outputs, persisted_outputs, persisted_path
from core.transcript.store import Store

WRAPPER = "<persisted-output>\nSaved to: /x/t.txt\n</persisted-output>"


@pytest.mark.parametrize(
    ("row", "path"),
    [
        ({"toolUseResult": {"persistedOutputPath": "/x/t.txt"}}, "/x/t.txt"),
        ({"toolUseResult": {"persistedOutputPath": 5}}, ""),
        ({"toolUseResult": "persistedOutputPath"}, ""),
        ({"toolUseResult": [{"persistedOutputPath": "/x/t.txt"}]}, ""),
        ({"persistedOutputPath": "/x/t.txt"}, ""),
        ({}, ""),
    ],
)
def test_only_the_record_of_the_client_counts(row: dict[str, JSON], path: str) -> None:
    assert persisted_path(row) == path


@pytest.mark.parametrize("path", ["/x/y/t.txt", "C:\\x\\t.txt", "t.txt", "../../t.txt"])
def test_of_a_path_only_the_name_counts(path: str) -> None:
    assert file_name(path) == "t.txt"


def test_outputs_that_the_client_stored_are_found_by_its_records(tmp_path: Path) -> None:
    made = Transcript().prompt("Go.").use("Bash", WRAPPER).use("Read", WRAPPER).use("Bash", "persistedOutputPath")
    made.rows[2]["toolUseResult"] = {"stdout": "", "persistedOutputPath": "/x/t.txt"}
    log, chain = load(made.write(tmp_path / "s.jsonl"))
    with log:
        assert persisted_outputs(log, chain.entries) == {made.calls[0]: "/x/t.txt"}


def test_an_output_is_gone_when_it_is_neither_in_the_store_nor_where_it_was(tmp_path: Path) -> None:
    store = Store(tmp_path / "s" / "tool-results")
    store.folder.mkdir(parents=True)
    (store.folder / "a.txt").write_bytes(b"")
    (tmp_path / "b.txt").write_bytes(b"")
    store.put("c", "stored once").unlink()
    persisted = {"a": "/other/machine/a.txt", "b": str(tmp_path / "b.txt"), "c": "/other/machine/c.txt", "d": "/\0"}
    assert gone_outputs(persisted, store) == {"c": "/other/machine/c.txt", "d": "/\0"}
