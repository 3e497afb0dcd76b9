"""Memory files and rules that apply to a path, each once, with what they import."""

from __future__ import annotations

import pytest

from core.attachments import scan
from core.attachments.base import Attachment, KnownFile, World
from core.attachments.memory_files import FILE_CHARS, MemoryFile, applies, imports_in, of_folder, with_imports
from core.attachments.nested_memory import NestedMemory, loaded_by
from tests.attachments.build import FakeFiles


def paths_of(attachments: tuple[Attachment, ...]) -> list[str]:
    return [a.path for a in attachments if isinstance(a, NestedMemory)]


def test_every_folder_on_the_way_is_asked_and_each_file_comes_once() -> None:
    files = FakeFiles(
        {"/w/CLAUDE.md": "top", "/w/a/CLAUDE.md": "A", "/w/a/b/CLAUDE.md": "B", "/w/a/c/CLAUDE.md": "C", "/w/a/b/x": ""}
    )
    world = World(files=files, cwd="/w", touched=["/w/a/b/x"], loaded=frozenset({"/w/CLAUDE.md"}))

    found = scan(world, ()).attachments

    assert paths_of(found) == ["/w/a/CLAUDE.md", "/w/a/b/CLAUDE.md"]
    assert found[0].text() == "Contents of /w/a/CLAUDE.md:\n\nA"
    assert scan(world, found).attachments == ()
    later = World(files=files, cwd="/w", touched=["/w/a/c/y"], loaded=world.loaded | loaded_by(found))
    assert paths_of(scan(later, ()).attachments) == ["/w/a/c/CLAUDE.md"]  # though the view holds nothing any more


def test_after_a_compaction_they_come_again() -> None:
    world = World(files=FakeFiles({"/w/a/CLAUDE.md": "A"}), cwd="/w", touched=["/w/a/x"])

    assert scan(world, ()).attachments == scan(world, ()).attachments != ()


def test_a_file_that_was_read_as_an_ordinary_one_is_not_given_again() -> None:
    files = FakeFiles({"/w/a/CLAUDE.md": "A"})
    known = {"/w/a/CLAUDE.md": KnownFile("A", 1)}

    assert scan(World(files=files, cwd="/w", touched=["/w/a/x"], known_files=known), ()).attachments == ()


def test_what_lies_outside_the_working_folder_has_no_memory() -> None:
    files = FakeFiles({"/other/CLAUDE.md": "no"})

    assert scan(World(files=files, cwd="/w", touched=["/other/x", "relative"]), ()).attachments == ()


def test_rules_come_with_the_paths_that_they_are_for() -> None:
    files = FakeFiles(
        {
            "/w/.claude/rules/py.md": "---\npaths: ['**/*.py']\n---\nuse tabs\n",
            "/w/.claude/rules/web.md": "---\ndescription: x\npaths: src/web/**, *.{html,css}\n---\nno inline styles\n",
            "/w/.claude/rules/list.md": '---\npaths:\n  - docs/\n  - "*.md"\n---\nshort lines\n',
            "/w/.claude/rules/notes.txt": "no rule",
        }
    )

    def rules(path: str) -> list[str]:
        return paths_of(scan(World(files=files, cwd="/w", touched=[path]), ()).attachments)

    assert rules("/w/src/a.py") == ["/w/.claude/rules/py.md"]
    assert rules("/w/src/web/x/y.js") == ["/w/.claude/rules/web.md"]
    assert rules("/w/deep/page.css") == ["/w/.claude/rules/web.md"]
    assert rules("/w/docs/conf.toml") == ["/w/.claude/rules/list.md"]
    assert rules("/w/src/a.go") == []
    found = scan(World(files=files, cwd="/w", touched=["/w/a.py"]), ()).attachments
    assert found[0].text() == "Contents of /w/.claude/rules/py.md:\n\nuse tabs\n"


@pytest.mark.parametrize(
    ("glob", "path", "fits"),
    [
        ("*.py", "/w/a/b.py", True),
        ("/src/*.py", "/w/src/b.py", True),
        ("/src/*.py", "/w/src/x/b.py", False),
        ("src/**/t?st.py", "/w/src/x/y/test.py", True),
        ("src/**/t?st.py", "/w/src/tst.py", False),
        ("src", "/w/a/src/b/c.py", True),
        ("./a/[x].py", "/w/a/[x].py", True),
        ("{a,b}/{c,d}.py", "/w/b/d.py", True),
        ("{a,b}/{c,d}.py", "/w/c/d.py", False),
        ("**", "/w/x", True),
        ("*.py", "/elsewhere/b.py", False),
    ],
)
def test_patterns_are_those_of_ignore_files(glob: str, path: str, fits: bool) -> None:
    assert applies(MemoryFile("/w/.claude/rules/r.md", "Project", "", (glob,)), path) == fits


def test_a_flood_of_braces_is_cut_off() -> None:
    assert not applies(MemoryFile("/w/.claude/rules/r.md", "Project", "", ("{a,b}" * 30,)), "/w/x")


def test_agents_md_stands_in_where_there_is_no_claude_md_and_local_comes_last() -> None:
    only = FakeFiles({"/w/AGENTS.md": "agents", "/w/CLAUDE.local.md": "mine"})
    both = FakeFiles({"/w/AGENTS.md": "agents", "/w/.claude/CLAUDE.md": "claude"})

    assert [(f.level, f.text) for f in of_folder("/w", only)] == [("Project", "agents"), ("Local", "mine")]
    assert [f.text for f in of_folder("/w", both)] == ["claude"]


def test_an_empty_or_unknown_front_matter_is_for_all_paths() -> None:
    files = FakeFiles({"/w/CLAUDE.md": "---\n---\nx", "/w/CLAUDE.local.md": "---\ntitle: a\n---\ny"})

    assert [(f.text, f.globs) for f in of_folder("/w", files)] == [("x", ()), ("y", ())]


def imported(texts: dict[str, str], home: str = "/home/me") -> list[str]:
    files = FakeFiles(texts)
    start = MemoryFile("/w/CLAUDE.md", "Project", texts["/w/CLAUDE.md"])
    return [file.path for file in with_imports(start, files, home, set())]


def test_imports_are_relative_to_the_file_to_the_home_or_absolute() -> None:
    texts = {
        "/w/CLAUDE.md": "See @docs/style.md, @~/mine.md and (also) @/w/abs.md. No @missing.md, no me@docs/style.md",
        "/w/docs/style.md": "and @more.md",
        "/w/docs/more.md": "",
        "/home/me/mine.md": "",
        "/w/abs.md": "",
    }
    expected = ["/w/CLAUDE.md", "/w/docs/style.md", "/w/docs/more.md", "/home/me/mine.md", "/w/abs.md"]

    assert imported(texts) == expected
    assert "/home/me/mine.md" not in imported(texts, home="")


def test_imports_end_after_five_steps_and_go_round_no_circle() -> None:
    chain = {f"/w/{n}.md": f"@{n + 1}.md" for n in range(1, 9)}
    assert imported({"/w/CLAUDE.md": "@1.md", **chain})[-1] == "/w/5.md"
    assert imported({"/w/CLAUDE.md": "@a.md", "/w/a.md": "@CLAUDE.md @a.md"}) == ["/w/CLAUDE.md", "/w/a.md"]


def test_code_imports_nothing() -> None:
    text = "`@a.md` and ``x @b.md``\n```sh\n@c.md\n~~~\n@d.md\n```\n~~~~\n@e.md\n~~~\n@f.md\n~~~~\n@g.md"

    assert imports_in(text) == ["g.md"]


def test_long_files_are_cut_and_secrets_taken_out() -> None:
    key = "AKIA" + "Q7XWZP3M5N8R2T4V"
    shown = MemoryFile("/w/x", "Project", f"aws key {key}\n" + "x" * FILE_CHARS).shown()

    assert key not in shown
    assert shown.endswith(" characters]")
    assert len(shown) < FILE_CHARS + 100
