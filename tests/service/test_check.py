"""Repaired copies: told from their source, and taken back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.errors import Changed
from core.service.check import CheckResult, check
from core.service.operation import Operation, Target
from core.service.session import opened
from core.service.undo import undo
from core.testing import SESSION_ID, Transcript
from core.transcript.listing import describe
from core.transcript.projects import session_file
from core.transcript.store import Store
from tests.disk import compacted, messages, on_disk, tree


def repaired(path: Path, folder: Path) -> CheckResult:
    with opened(session_file(path), whole=True) as session:
        return check(session, folder)


@pytest.fixture
def torn(tmp_path: Path) -> Path:
    path = Transcript().prompt("Fix the parser").answer("Done.").write(tmp_path / f"{SESSION_ID}.jsonl")
    path.write_bytes(path.read_bytes() + b'{"type":"user","uuid":"x"\n')
    return path


def test_a_repaired_copy_says_so_in_its_title_and_is_taken_back(torn: Path) -> None:
    before = tree(torn.parent)
    copy = Path(repaired(torn, torn.parent).output)

    assert describe(session_file(copy)).title == "repaired: Fix the parser"
    assert messages(copy) == messages(torn)
    assert repaired(copy, torn.parent).ok
    undone = undo(session_file(copy), torn.parent, torn.parent.parent / "locks")
    assert (undone.op, undone.removed, undone.source_path) == ("repair", True, str(torn))
    assert tree(torn.parent) == before


def test_a_copy_of_a_copy_is_named_once_and_lies_where_it_is_said_to(
    torn: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Path(repaired(torn, torn.parent).output)
    copy.write_bytes(copy.read_bytes() + b"{\n")
    monkeypatch.chdir(torn.parent)
    again = Path(repaired(copy, Path()).output)
    assert again.parent == torn.parent
    assert describe(session_file(again)).title == "repaired: Fix the parser"


def test_rows_written_since_the_transcript_was_read_are_not_left_out_of_a_copy(torn: Path) -> None:
    with opened(session_file(torn), whole=True) as session:
        with torn.open("ab") as file:
            file.write(b"{}\n")
        before = tree(torn.parent)
        with pytest.raises(Changed):
            check(session, torn.parent)
    assert tree(torn.parent) == before


def test_of_two_that_repair_at_once_one_finds_the_copy(torn: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pending, copies = Operation.pending, list[str]()

    @contextmanager
    def late(operation: Operation) -> Iterator[str]:
        if not copies:
            copies.append("")
            copies[0] = repaired(torn, torn.parent).output
        with pending(operation) as reason:
            yield reason

    monkeypatch.setattr(Operation, "pending", late)
    second = repaired(torn, torn.parent)
    assert (second.output, second.already_there) == (copies[0], True)


@pytest.mark.parametrize("fault", [KeyboardInterrupt, Changed])
def test_what_is_broken_off_leaves_no_store_behind(torn: Path, fault: type[BaseException]) -> None:
    before = tree(torn.parent)
    with opened(session_file(torn), whole=True) as session:
        operation = Operation(session, Target(torn.parent), "11112222-3333-4333-8333-333333333333")

        def broken_off() -> None:
            with operation.pending():
                operation.store.put("call1", "an output")
                raise fault("stop")

        with pytest.raises(fault):
            broken_off()
    assert tree(torn.parent) == before
    assert not operation.store.folder.parent.exists()


def gone(path: Path) -> list[tuple[str, bool]]:
    """The stored outputs that are reported as gone, and whether that is damage."""
    with opened(session_file(path), whole=True) as session:
        return [(f.message, f.damage) for f in check(session).findings if f.kind == "gone-output"]


def test_what_was_taken_out_and_is_gone_is_reported() -> None:
    made = Transcript().prompt("Fix the parser").answer("Done. " * 3_000).prompt("And the lexer").answer("Done.")
    with on_disk(made) as path:
        result = Path(compacted(path).output)
        assert gone(result) == []

        (page,) = Store.beside(result).folder.glob("*.md")
        page.unlink()
        assert gone(result) == [(f"{page.name}: what was taken out and stored there is gone", False)]


def test_a_store_behind_a_link_is_not_looked_into(tmp_path: Path) -> None:
    path = Transcript().prompt("Fix the parser").answer("Done.").write(tmp_path / f"{SESSION_ID}.jsonl")
    (tmp_path / "elsewhere").mkdir()
    path.with_suffix("").symlink_to(tmp_path / "elsewhere")

    assert gone(path) == []
