"""Finding the one transcript that is meant."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from core.errors import SessionNotFound
from core.transcript.locate import expand, locate
from core.transcript.projects import project_slug
from core.transcript.records import Record, Source

DATA = Path(__file__).parents[1] / "data" / "cases"
FIRST = "11111111-1111-4111-8111-111111111111"
SECOND = "11112222-1111-4111-8111-111111111111"


class Home:
    """Two sessions in two projects, a subagent, and a working folder that was deleted."""

    def __init__(self, root: Path) -> None:
        self.claude = root / "claude"
        self.folder = root / "gone"
        self.first = self.put("-srv-app", FIRST, "Fix login", 1)
        self.second = self.put("-srv-web", SECOND, "Add cart", 2)

    def put(self, project: str, name: str, title: str, when: int) -> Path:
        path = self.claude / "projects" / project / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f'{{"type":"user","cwd":"/{project[1:].replace("-", "/")}","message":{{"content":"hi"}}}}\n'
            f'{{"type":"custom-title","customTitle":"{title}"}}\n',
            encoding="utf-8",
        )
        os.utime(path, (when, when))
        return path

    def locate(self, name: str, folder: str | Path = "") -> Path:
        return locate(name, self.claude, Path(folder or self.folder)).path


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_an_id_is_searched_in_all_projects(home: Home) -> None:
    assert home.locate(FIRST) == home.first
    assert home.locate(SECOND.upper()) == home.second


def test_a_unique_start_of_an_id_is_enough(home: Home) -> None:
    assert home.locate("11112") == home.second


def test_several_hits_are_listed_and_none_is_guessed(home: Home) -> None:
    with pytest.raises(SessionNotFound) as caught:
        home.locate("1111")

    assert str(home.first) in caught.value.hint
    assert str(home.second) in caught.value.hint


def test_one_id_in_two_projects_is_not_unique(home: Home) -> None:
    copy = home.put("-srv-copy", FIRST, "Copy", 3)

    with pytest.raises(SessionNotFound) as caught:
        home.locate(FIRST)

    assert str(copy) in caught.value.hint


def test_a_whole_id_wins_over_longer_ones(home: Home) -> None:
    short = home.put("-srv-app", "1111", "short", 3)

    assert home.locate("1111") == short


def test_many_hits_are_listed_in_part(home: Home) -> None:
    for number in range(20):
        home.put("-srv-app", f"abc{number:02}", "x", number)

    with pytest.raises(SessionNotFound) as caught:
        home.locate("abc")

    assert caught.value.hint.endswith("and 10 more")


def test_a_title_is_found_whatever_its_case_and_spacing(home: Home) -> None:
    assert home.locate("fix  LOGIN") == home.first


def test_a_part_of_one_title_is_enough(home: Home) -> None:
    assert home.locate("LOGIN") == home.first
    home.put("-srv-app", "other", "Fix login page", 3)
    assert home.locate("fix login") == home.first
    with pytest.raises(SessionNotFound, match="2 sessions answer to 'Log'"):
        home.locate("Log")


def test_a_title_may_hold_what_looks_like_a_path(home: Home, tmp_path: Path) -> None:
    slashed = home.put("-srv-app", "slashed", "Fix src/app please", 3)

    for name in ("Fix src/app please", "fix SRC/app", "src/app"):
        assert home.locate(name) == slashed
        assert locate(name, home.claude, tmp_path, []).path == slashed
    for name in ("/src/app", "src/app.jsonl", "src/apple"):
        with pytest.raises(SessionNotFound, match="there is no file"):
            home.locate(name)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app").write_bytes(b"")
    assert home.locate("src/app", tmp_path) == tmp_path / "src" / "app"


def test_a_folder_is_no_session(home: Home) -> None:
    with pytest.raises(SessionNotFound, match="is a folder") as caught:
        home.locate(str(home.claude))
    assert f"{{sessions}} {home.claude}" in caught.value.hint


def test_a_title_that_two_sessions_have_is_not_unique(home: Home) -> None:
    other = home.put("-srv-app", "other", "Fix login", 3)
    usage = b'{"type":"assistant","timestamp":"2026-01-05T09:10:11Z","message":{"usage":{"input_tokens":15600}}}'
    other.write_bytes(other.read_bytes() + b"\n" + usage)

    with pytest.raises(SessionNotFound) as caught:
        home.locate("Fix login")

    assert f"\n  {FIRST}  1970-01-01T00:00Z  Fix login" in caught.value.hint
    assert "\n  other  2026-01-05T09:10Z  15,600 tokens  Fix login" in caught.value.hint


def test_a_path_is_used_as_it_is(home: Home, tmp_path: Path) -> None:
    outside = tmp_path / "kept" / "old.jsonl"
    outside.parent.mkdir()
    outside.write_bytes(b"")

    assert home.locate(str(outside)) == outside
    assert home.locate("old.jsonl", outside.parent) == outside
    assert locate(str(outside), home.claude, home.folder).id == "old"


def test_a_case_file_is_named_from_its_id_not_from_its_folder(home: Home) -> None:
    assert locate(str(DATA / "paths-1.jsonl"), home.claude, home.folder).id == "paths-1"


@pytest.mark.parametrize("name", ["", "nothing", "none.jsonl", "no/such/file", "x" * 5000, "nul\0byte", "*.none"])
def test_what_is_not_there_is_said_with_what_to_do(home: Home, name: str) -> None:
    with pytest.raises(SessionNotFound) as caught:
        home.locate(name)

    assert caught.value.hint


def test_latest_is_the_newest_of_this_folder_else_of_all(home: Home) -> None:
    assert home.locate("latest", "/srv/app") == home.first
    assert home.locate("latest", "/srv/none") == home.second


def test_latest_passes_over_sessions_without_a_conversation(home: Home) -> None:
    home.put("-srv-web", "newest", "x", 9).write_bytes(b"")

    assert home.locate("latest") == home.second


def test_latest_of_nothing_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(SessionNotFound):
        locate("latest", tmp_path, tmp_path)


def test_a_subagent_is_found_and_names_its_session(home: Home) -> None:
    path = home.put(f"-srv-app/{FIRST}/subagents", "agent-a0ad4f4", "x", 1)

    found = locate("agent-a0", home.claude, home.folder)

    assert (found.path, found.parent) == (path, FIRST)


@pytest.fixture
def roots(tmp_path: Path) -> list[Path]:
    """One folder that may be read, with a transcript in it and a link that leads out of it."""
    inside, outside = tmp_path / "in" / "a.jsonl", tmp_path / "b.jsonl"
    inside.parent.mkdir()
    for path in (inside, outside):
        path.write_bytes(b"")
    (inside.parent / "way-out.jsonl").symlink_to(outside)
    return [inside.parent]


def test_with_roots_paths_lead_into_them_or_into_the_projects(home: Home, roots: list[Path]) -> None:
    for path in (roots[0] / "a.jsonl", home.first):
        assert locate(str(path), home.claude, home.folder, roots).path == path
    assert locate("a.jsonl", home.claude, roots[0], roots).path == roots[0] / "a.jsonl"
    assert locate(FIRST, home.claude, home.folder, roots).path == home.first
    assert locate("Add cart", home.claude, home.folder, roots).path == home.second
    assert locate("latest", home.claude, home.folder, roots).path == home.second


@pytest.mark.parametrize(
    "name", ["b.jsonl", "in/../b.jsonl", "in/way-out.jsonl", "gone.jsonl", "in/..", "..", ".", "in/\0.jsonl"]
)
def test_what_lies_outside_the_roots_is_refused_whether_it_is_there_or_not(
    home: Home, tmp_path: Path, roots: list[Path], name: str
) -> None:
    for given in (name, f"{tmp_path}/{name}"):
        with pytest.raises(SessionNotFound) as caught:
            locate(given, home.claude, tmp_path, roots)

        assert str(caught.value) in (
            f"{given!r} lies outside the folders that may be read",
            f"there is no session {given!r}",
        )


def test_a_word_that_names_a_file_out_of_reach_may_still_be_a_title(home: Home, tmp_path: Path) -> None:
    (tmp_path / "Fix login").write_bytes(b"")

    assert locate("Fix login", home.claude, tmp_path, []).path == home.first
    assert locate("Fix login", home.claude, tmp_path).path == tmp_path / "Fix login"


def test_a_link_among_the_projects_that_leads_out_of_them_is_refused(home: Home, tmp_path: Path) -> None:
    other = "99999999-1111-4111-8111-111111111111"
    elsewhere = tmp_path / "elsewhere.jsonl"
    elsewhere.write_bytes(home.first.read_bytes())
    (home.first.parent / f"{other}.jsonl").symlink_to(elsewhere)

    for name in (other, "latest"):
        with pytest.raises(SessionNotFound, match="lies outside"):
            locate(name, home.claude, home.folder, [])
    assert locate(other, home.claude, home.folder).id == other


def test_a_long_name_is_not_repeated_in_full(home: Home) -> None:
    with pytest.raises(SessionNotFound) as caught:
        locate("/" + "x" * 10_000_000, home.claude, home.folder, [])

    assert len(str(caught.value)) < 300


def test_folders_and_patterns_stand_for_their_files_each_once(home: Home) -> None:
    app, web = home.first.parent, home.second.parent
    home.put("-srv-app", "agent-1234567", "x", 1)

    def paths(*names: str) -> list[Path]:
        return [file.path for file in expand(names, home.claude, app)]

    assert paths(str(app)) == [home.first]
    assert paths("1111*.jsonl") == [home.first]
    assert paths(f"{web}/*.jsonl", str(app), SECOND) == [home.second, home.first]
    assert paths("agent-*.jsonl") == [app / "agent-1234567.jsonl"]


def test_a_folder_of_subagents_stands_for_them(home: Home) -> None:
    path = home.put(f"-srv-app/{FIRST}/subagents", "agent-a0", "x", 1)

    assert [file.path for file in expand([str(path.parent)], home.claude, home.folder)] == [path]


def test_a_file_with_a_pattern_for_a_name_is_a_file(home: Home, tmp_path: Path) -> None:
    odd = tmp_path / "odd[1].jsonl"
    odd.write_bytes(b"")

    assert [file.path for file in expand([str(odd)], home.claude, home.folder)] == [odd]


def test_a_title_that_begins_so_wins_and_a_copy_does_not(home: Home) -> None:
    copy = home.put("-srv-app", "copy", "compacted: Fix login", 3)
    rows = copy.read_bytes()
    copy.write_bytes(Record(op="compact", id="1", session_id="copy", source=Source("x", FIRST, 1)).row(rows) + rows)
    assert [home.locate(name) for name in ("fix", "login", "compacted")] == [home.first, home.first, copy]

    with copy.open("ab") as file:
        file.write(b'{"type":"mode"}\n')
    assert home.locate("fix") == home.first
    with pytest.raises(SessionNotFound, match="2 sessions answer to 'login'"):
        home.locate("login")


def test_a_title_may_look_like_a_pattern(home: Home) -> None:
    path = home.put("-srv-app", "q", "what now?", 4)

    assert [file.path for file in expand(["what now?"], home.claude, home.first.parent)] == [path]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing", "there is no session 'nothing'"),
        ("*.none", "no file matches '*.none'"),
        ("/no/such/*.jsonl", "no file matches '/no/such/*.jsonl'"),
        ("/no/such", "there is no file /no/such"),
    ],
)
def test_a_name_that_stands_for_nothing_is_refused(home: Home, name: str, said: str) -> None:
    with pytest.raises(SessionNotFound, match=re.escape(said)):
        expand([name], home.claude, home.first.parent)


def test_a_folder_without_transcripts_stands_for_the_sessions_that_were_started_there(
    home: Home, tmp_path: Path
) -> None:
    shop = tmp_path / "shop"
    (shop / "src").mkdir(parents=True)
    path = home.put("-srv-app", SECOND, "x", 1).rename(tmp_path / "moved.jsonl")
    row = f'{{"type":"user","cwd":"{shop}","message":{{"content":"hi"}}}}\n'
    mine = home.put(project_slug(str(shop)), "mine", "x", 1)
    mine.write_text(row)

    for name, folder in ((".", shop), ("..", shop / "src"), (str(shop), home.folder)):
        assert [file.path for file in expand([name], home.claude, folder)] == [mine]
    gone = shutil.move(shop, tmp_path / "elsewhere")
    assert [file.path for file in expand([str(shop)], home.claude, home.folder)] == [mine]
    shutil.move(gone, shop)
    path.rename(shop / "moved.jsonl")
    assert [file.path.name for file in expand(["."], home.claude, shop)] == ["moved.jsonl"]


def test_a_folder_without_transcripts_is_refused(home: Home, tmp_path: Path) -> None:
    with pytest.raises(SessionNotFound):
        expand([str(tmp_path)], home.claude, home.folder)
