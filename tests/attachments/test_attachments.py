"""All kinds together: one that fails ends nothing, all are read as they were written, damage is passed over."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import msgspec
import pytest

import core.attachments as attachments
from core.attachments import KINDS, decode, scan
from core.attachments.base import Attachment, NoFiles, Planning, Queued, Task, World, to_message
from core.attachments.changed_files import Change, ChangedFiles
from core.attachments.date_change import DateChange
from core.attachments.disk import MOST_BYTES, Disk
from core.attachments.nested_memory import Content, NestedMemory
from core.attachments.plan_mode import PlanMode
from core.model import JSON
from tests.attachments.build import FakeFiles

EVERYTHING = World(
    responses=50,
    date="2026-12-01",
    prefix_date="2026-11-30",
    queued=[Queued("q", ({"type": "text", "text": "stop"}, {"type": "image", "source": {}}))],
    deferred_tools={"A": "A"},
    agents={"plan": "- plan"},
    mcp_instructions={"db": "Ask."},
    files=FakeFiles({"/w/a/CLAUDE.md": "A", "/w/a/.claude/skills/s/SKILL.md": ""}),
    cwd="/w",
    touched=["/w/a/x"],
    planning=Planning("/p.md", False),
    tasks=[Task("1", "do it", "pending")],
    nudge="Snip.",
)
ALL = (*scan(EVERYTHING, ()).attachments, ChangedFiles((Change("/w/x", "0", 1, "+a"),)))


def test_every_kind_has_an_example() -> None:
    assert {type(a) for a in ALL} == {*KINDS}
    assert scan(EVERYTHING, ()).remarks == ()


@pytest.mark.parametrize("attachment", ALL, ids=lambda a: type(a).__name__)
def test_the_data_of_an_attachment_decodes_to_it(attachment: Attachment) -> None:
    assert decode(msgspec.json.decode(msgspec.json.encode(attachment))) == attachment


@pytest.mark.parametrize("attachment", ALL, ids=lambda a: type(a).__name__)
def test_all_but_what_a_person_said_is_marked_as_said_by_nobody(attachment: Attachment) -> None:
    message = to_message(attachment, "u1")

    first = str(message.content[0]["text"])
    assert first.startswith("<system-reminder>") == (message.kind != "prompt")
    assert attachment.text() in first


def test_a_kind_that_fails_is_named_and_the_others_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Attachment, frozen=True, tag="broken"):
        @classmethod
        def scan(cls, world: World, earlier: Sequence[Attachment]) -> Sequence[Self]:
            raise OSError("the disk is gone")

    monkeypatch.setattr(attachments, "KINDS", (Broken, DateChange))

    found = scan(EVERYTHING, ())

    assert found.attachments == (DateChange("2026-12-01"),)
    assert found.remarks == ("broken was not looked at: OSError: the disk is gone",)


@pytest.mark.parametrize(
    "data",
    [None, "x", [], {}, {"type": 1}, {"type": "unheard_of"}, {"type": "date_change"}, {"type": "date", "date": 7}],
)
def test_damage_and_unknown_kinds_are_none(data: JSON) -> None:
    assert decode(data) is None


def test_the_rows_of_a_client_are_understood() -> None:
    plan: JSON = {
        "type": "plan_mode",
        "reminderType": "full",
        "isSubAgent": False,
        "planFilePath": "/p.md",
        "planExists": False,
    }
    nested: JSON = {
        "type": "nested_memory",
        "path": "/w/sub/CLAUDE.md",
        "content": {"path": "/w/sub/CLAUDE.md", "type": "Project", "content": "x", "contentDiffersFromDisk": False},
        "displayPath": "sub/CLAUDE.md",
    }

    assert decode({"type": "date", "date": "2026-11-29"}) == DateChange("2026-11-29")
    assert decode(plan) == PlanMode("full", "/p.md", False)
    assert decode(nested) == NestedMemory(
        "/w/sub/CLAUDE.md", Content("/w/sub/CLAUDE.md", "Project", "x"), "sub/CLAUDE.md"
    )


def test_the_base_has_neither_text_nor_scan() -> None:
    with pytest.raises(NotImplementedError):
        Attachment().text()
    with pytest.raises(NotImplementedError):
        Attachment.scan(World(), ())


def test_without_files_there_is_nothing_to_see() -> None:
    assert (NoFiles().mtime_ns("/x"), NoFiles().read("/x"), NoFiles().names("/")) == (None, None, ())


class TestDisk:
    def test_texts_below_the_roots_are_read(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        root.mkdir()
        (root / "a.md").write_bytes("\ufeffone\r\ntwo".encode())
        disk = Disk([root])

        assert disk.read(str(root / "a.md")) == "one\ntwo"
        assert disk.mtime_ns(str(root / "a.md")) == (root / "a.md").stat().st_mtime_ns
        assert disk.names(str(root)) == ["a.md"]

    def test_what_lies_elsewhere_is_not_there_not_even_behind_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "root").mkdir()
        (tmp_path / "out.md").write_text("out")
        (tmp_path / "root" / "link.md").symlink_to(tmp_path / "out.md")
        disk = Disk([tmp_path / "root"])

        for path in (str(tmp_path / "out.md"), str(tmp_path / "root" / "link.md"), "bad\0path"):
            assert (disk.read(path), disk.mtime_ns(path)) == (None, None)
        assert disk.names(str(tmp_path)) == ()

    def test_secrets_binaries_folders_and_huge_files_are_not_read(self, tmp_path: Path) -> None:
        (tmp_path / ".env").write_text("A=1")
        (tmp_path / "bin").write_bytes(b"a\0b")
        (tmp_path / "huge").write_bytes(b"x" * (MOST_BYTES + 1))
        (tmp_path / "link").symlink_to(tmp_path / ".env")
        os.mkfifo(tmp_path / "pipe")
        disk = Disk([tmp_path])

        assert [disk.read(str(tmp_path / n)) for n in (".env", "bin", "huge", "link", "pipe", "", "none")] == [None] * 7
        assert disk.mtime_ns(str(tmp_path / "none")) is None
        assert disk.names(str(tmp_path / "bin")) == ()
