"""The client's folders: slugs, spellings, the files in them."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.transcript.projects import (
    agent_files,
    project_folders,
    project_slug,
    session_file,
    session_files,
    session_id,
    spellings,
    transcripts,
)

ID = "11111111-1111-4111-8111-111111111111"


def put(path: Path, when: float = 1.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}\n", encoding="utf-8")
    os.utime(path, (when, when))
    return path


@pytest.mark.parametrize(
    ("folder", "slug"),
    [
        ("/srv/app", "-srv-app"),
        ("/home/me/.config/my_app", "-home-me--config-my-app"),
        ("C:\\Users\\me\\shop", "C--Users-me-shop"),
        ("/srv/größe", "-srv-gr--e"),
        ("/srv/\N{ROCKET}", "-srv---"),
    ],
)
def test_everything_but_ascii_letters_and_digits_becomes_a_dash(folder: str, slug: str) -> None:
    assert project_slug(folder) == slug


def test_a_long_folder_is_cut_and_gets_a_hash_of_the_whole(tmp_path: Path) -> None:
    first, second = "/srv/" + "a" * 300, "/srv/" + "a" * 299 + "b"

    slugs = project_slug(first), project_slug(second)

    assert slugs[0] != slugs[1]
    assert all(slug.startswith("-srv-" + "a" * 195 + "-") for slug in slugs)
    # The hash is the 31-multiplier one of 32 bits, here with its sign bit set and not set.
    assert project_slug("x" * 201) == "x" * 200 + "-" + _hash36("x" * 201)


def test_a_slug_of_200_units_is_not_cut() -> None:
    assert project_slug("a" * 200) == "a" * 200


def test_a_hash_of_zero_has_a_digit() -> None:
    assert project_slug("\0" * 201) == "-" * 200 + "-0"


def _hash36(text: str) -> str:
    value = 0
    for char in text:
        value = (31 * value + ord(char)) % 2**32
    number = abs(value - 2**32 if value >= 2**31 else value)
    digits = ""
    while number:
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[number % 36] + digits
        number //= 36
    return digits


@given(st.text())
def test_a_slug_is_one_plain_file_name(folder: str) -> None:
    slug = project_slug(folder)

    assert slug.isascii()
    assert len(slug) <= 208
    assert not set(slug) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")


def test_a_folder_is_known_by_all_its_spellings(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)

    assert str(real) in spellings(f"{tmp_path}/link/")
    assert "/d/shop" in spellings("D:\\shop")
    assert "D:\\shop" in spellings("/d/shop")
    assert unicodedata.normalize("NFD", "/srv/é") in spellings("/srv/\N{LATIN SMALL LETTER E WITH ACUTE}")
    assert spellings("/") == ["/"]


def test_project_folders_are_found_by_any_spelling_and_case_decides_only_when_it_must(tmp_path: Path) -> None:
    for name in ("-srv-App", "-srv-app", "d--shop"):
        (tmp_path / "projects" / name).mkdir(parents=True)

    def names(folder: str) -> list[str]:
        return [path.name for path in project_folders(tmp_path, folder)]

    assert names("/srv/app") == ["-srv-app"]
    assert names("/srv/App/") == ["-srv-App"]
    assert names("/srv/APP") == ["-srv-App", "-srv-app"]
    assert names("D:\\shop") == ["d--shop"]
    assert names("/srv/none") == []


def test_sessions_come_newest_first_and_subagents_apart(tmp_path: Path) -> None:
    project = tmp_path / "projects" / "-srv-app"
    old, new = put(project / f"{ID}.jsonl", 1), put(project / "other.jsonl", 2)
    beside, below = put(project / "agent-1234567.jsonl"), put(project / ID / "subagents" / "agent-a0.jsonl")
    put(project / "notes.txt")
    (project / "folder.jsonl").mkdir()
    (project / "loop.jsonl").symlink_to(project / "loop.jsonl")

    assert [file.path for file in session_files(tmp_path)] == [new, old]
    assert [(file.path, file.parent) for file in agent_files(tmp_path)] == [(beside, ""), (below, ID)]


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert session_files(tmp_path) == []
    assert list(transcripts(tmp_path / "none")) == []


def test_a_transcript_outside_is_described_by_its_name(tmp_path: Path) -> None:
    path = put(tmp_path / "subagents" / "agent-7.jsonl", 5)

    file = session_file(path)

    assert (file.id, file.parent, file.mtime, file.size_bytes) == ("agent-7", tmp_path.name, 5, 3)


@pytest.mark.parametrize(
    ("name", "expected"), [(f"rollout-2026-01-05T09-00-00-{ID}.jsonl", ID), (f"{ID}.jsonl", ID), ("x.json", "x")]
)
def test_an_id_comes_from_the_file_name(name: str, expected: str) -> None:
    assert session_id(Path("/any/folder") / name) == expected
