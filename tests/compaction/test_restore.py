"""The files that come back behind a summary."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.compaction.restore import Restored, RestoreLimits, files_of, restore
from core.model import Block, Message
from core.testing import Transcript
from tests.disk import messages, on_disk

CASES = Path(__file__).parents[1] / "data" / "cases"
NO_LIMITS = RestoreLimits(50, 5_000, 50_000)


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """The folder of the session, with one file."""
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "app.py").write_text("print('now')\n", encoding="utf-8")
    return folder


def used(*paths: str, tool: str = "Read") -> tuple[Message, ...]:
    """A session that used the files, in this order, in the first days of 2026."""
    made = Transcript().prompt("Look")
    for path in paths:
        made.use(tool, "old text", file_path=path, notebook_path=path)
    with on_disk(made.answer("Done")) as written:
        return messages(written)


def restored(app: Path, *paths: str, limits: RestoreLimits = NO_LIMITS) -> list[Restored]:
    return restore(used(*paths), (), str(app), limits)


def age(path: Path, days: int) -> None:
    """Set the time of the last change to so many days after (before, if negative) the session."""
    time = (datetime(2026, 1, 5, 9, tzinfo=UTC) + timedelta(days=days)).timestamp()
    os.utime(path, (time, time))


def test_of_five_files_only_the_text_that_can_be_shown_comes_back(app: Path, tmp_path: Path) -> None:
    case = tmp_path / "case.jsonl"
    case.write_text((CASES / "restore-1.jsonl").read_text(encoding="utf-8").replace("/srv/app", str(app)), "utf-8")
    (app / "app.o").write_bytes(b"\x7fELF\0\0")
    (app / ".env").write_text("KEY=hunter2\n", encoding="utf-8")
    with (app / "huge.csv").open("wb") as file:
        file.truncate(50_000_000)

    found = {Path(r.path).name: r for r in restore(messages(case), (), str(app), NO_LIMITS)}

    assert "changed on disk since" in found["app.py"].text
    assert "print('now')" in found["app.py"].text
    assert "deleted" in found["gone.py"].text
    assert [name for name, r in found.items() if r.has_content] == ["app.py"]
    assert "hunter2" not in found[".env"].text
    assert "binary" in found["app.o"].text
    assert list(found) == ["app.py", ".env", "huge.csv", "app.o", "gone.py"]  # newest use first


def test_a_large_text_is_a_reference(app: Path) -> None:
    (app / "huge.csv").write_text("a,b,c\n" * 100_000, encoding="utf-8")

    (found,) = restored(app, "huge.csv")
    assert not found.has_content
    assert "too large to show (600000 bytes)" in found.text


def test_what_the_session_itself_wrote_is_not_called_changed(app: Path) -> None:
    made = Transcript().prompt("Write").use("Write", "ok", file_path="app.py").answer("Done")
    with on_disk(made) as path:
        shown = messages(path)
    written_at = datetime.fromisoformat(shown[2].timestamp).timestamp() - 0.01  # between the call and its result
    os.utime(app / "app.py", (written_at, written_at))

    (found,) = restore(shown, (), str(app), NO_LIMITS)
    assert "as it is on disk now" in found.text
    age(app / "app.py", 1)
    (found,) = restore(shown, (), str(app), NO_LIMITS)
    assert "changed on disk since it was last used here" in found.text


def test_a_use_without_a_time_counts_as_long_ago(app: Path) -> None:
    call: Block = {"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": "app.py"}}
    (found,) = restore([Message("assistant", "response", (call,), timestamp="long ago")], (), str(app), NO_LIMITS)
    assert "changed on disk" in found.text


def test_files_of_the_tail_do_not_come_back_however_they_are_spelled(app: Path) -> None:
    (app / "b.py").write_text("b", encoding="utf-8")
    kept = used(str(app / "app.py"))

    found = restore([*used("app.py", "./app.py", "b.py"), *kept], kept, str(app), NO_LIMITS)
    assert [r.path for r in found] == ["b.py"]
    # and one that was used under two names comes back once
    assert [r.path for r in restored(app, str(app / "app.py"), "app.py")] == ["app.py"]


@pytest.mark.parametrize("tool", ["Read", "Edit", "MultiEdit", "Write", "NotebookEdit"])
def test_every_tool_on_files_counts_as_a_use(app: Path, tool: str) -> None:
    assert [r.has_content for r in restore(used("app.py", tool=tool), (), str(app), NO_LIMITS)] == [True]


def test_other_tools_and_odd_inputs_are_no_use(app: Path) -> None:
    given: list[Block] = [
        {"type": "tool_use", "id": "1", "name": "Bash", "input": {"file_path": "app.py"}},
        {"type": "tool_use", "id": "2", "name": "Read", "input": ["app.py"]},
        {"type": "tool_use", "id": "3", "name": "Read", "input": {"file_path": 7}},
        {"type": "tool_use", "id": "4", "name": "Read", "input": {"file_path": ""}},
        {"type": "tool_use", "id": "5", "name": "Read", "input": {"file_path": "a\0b"}},
        {"type": "tool_use", "id": "6", "name": ["Read"], "input": {}},
    ]
    assert restore([Message("assistant", "response", tuple(given))], (), str(app), NO_LIMITS) == []


def test_nothing_outside_the_folder_is_read(app: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("outside", encoding="utf-8")
    (app / "link.txt").symlink_to(tmp_path / "secret.txt")
    (app / "loop").symlink_to(app / "loop")
    (app / "up").symlink_to(tmp_path)

    paths = (
        "../secret.txt",
        str(tmp_path / "secret.txt"),
        "link.txt",
        "up/secret.txt",
        "loop",
        "loop/x",
        "/etc/passwd",
    )
    assert restored(app, *paths) == []


def test_a_link_that_stays_inside_is_followed(app: Path) -> None:
    (app / "link.py").symlink_to("app.py")

    (found,) = restored(app, "link.py")
    assert "print('now')" in found.text


def test_what_is_no_ordinary_file_is_named_and_not_opened(app: Path) -> None:
    os.mkfifo(app / "pipe")  # opening it would wait for ever
    (app / "folder").mkdir()

    found = {r.path: r.text for r in restored(app, "pipe", "folder", "app.py/below", "x" * 500)}
    assert "no ordinary file" in found["pipe"]
    assert "no ordinary file" in found["folder"]
    assert "cannot be read now: Not a directory" in found["app.py/below"]
    assert "cannot be read now: File name too long" in found["x" * 500]


def test_a_file_that_may_not_be_read_is_named(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    shown = used("app.py")
    monkeypatch.setattr(os, "open", refuse)
    (found,) = restore(shown, (), str(app), NO_LIMITS)
    assert "cannot be read now: Permission denied" in found.text


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        ".env.local",
        ".envrc",
        ".env-prod",
        ".env_local",
        "prod.env",
        ".env/settings",
        "secrets/db",
        "id_rsa",
        "id_rsa_work",
        "server.key",
        "cert.PEM",
        "login.ppk",
        "credentials.json",
        ".claude/.credentials.json",
        "secrets.yaml",
        "my-secrets.yml",
        "passwords.txt",
        "token.txt",
        "auth.json",
        "service-account-prod.json",
        "terraform.tfvars",
        ".netrc",
        ".my.cnf",
        ".vault-token",
        ".dockercfg",
        "kubeconfig",
        ".config/gh/hosts.yml",
        ".bash_history",
        ".zsh_history",
        ".python_history",
        ".lesshst",
        "api_keys.toml",
    ],
)
def test_secrets_are_named_only(app: Path, name: str) -> None:
    (app / name).parent.mkdir(parents=True, exist_ok=True)
    (app / name).write_text("hunter2", encoding="utf-8")
    (app / "harmless").symlink_to(name)

    assert all("hunter2" not in r.text and not r.has_content for r in restored(app, name))
    assert all("hunter2" not in r.text and not r.has_content for r in restored(app, "harmless"))


@pytest.mark.parametrize(
    "name",
    [
        "environment.py",
        "key.py",
        "credential_check.py",
        "keyboard.txt",
        "tokens.py",
        "secrets_test.py",
        "env.py",
        "authentication.md",
        "tokenizer.json",
        "author.json",
        "history.md",
        "docs/passwords.md",
        "histogram.txt",
        "service.json",
    ],
)
def test_files_whose_names_only_sound_like_secrets_come_back(app: Path, name: str) -> None:
    (app / name).parent.mkdir(exist_ok=True)
    (app / name).write_text("text", encoding="utf-8")
    assert restored(app, name)[0].has_content


def test_at_most_so_many_files_the_newest_first(app: Path) -> None:
    names = [f"f{n}.py" for n in range(8)]
    for name in names:
        (app / name).write_text(name, encoding="utf-8")

    assert [r.path for r in restored(app, *names, limits=RestoreLimits(3))] == ["f7.py", "f6.py", "f5.py"]
    assert restored(app, *names, limits=RestoreLimits(0)) == []


def test_each_file_and_all_together_stay_within_their_tokens(app: Path) -> None:
    names = [f"f{n}.py" for n in range(5)]
    for name in names:
        (app / name).write_text("0123456789\n" * 500, encoding="utf-8")

    found = restored(app, *names, limits=RestoreLimits(5, 1_000, 2_500))
    assert [len(r.text) // 3 <= 1_000 for r in found] == [True] * 3
    assert sum(len(r.text) for r in found) <= 7_500
    assert "[cut: the file has 5500 characters]" in found[0].text
    assert "0123456789\n[cut" in found[0].text  # at a line end
    assert restored(app, *names, limits=RestoreLimits(5, 1_000, 0)) == []


def test_one_long_line_is_cut_within_it(app: Path) -> None:
    (app / "min.js").write_text("x" * 4_000, encoding="utf-8")

    (found,) = restored(app, "min.js", limits=RestoreLimits(5, 1_000, 50_000))
    assert found.has_content
    assert 2_800 < found.text.count("x") <= 3_000


def test_an_empty_file_comes_back_empty(app: Path) -> None:
    (app / "empty.py").touch()
    (found,) = restored(app, "empty.py")
    assert found.has_content
    assert "empty.py (changed" in found.text


def test_bytes_that_are_no_text_are_replaced(app: Path) -> None:
    (app / "latin.txt").write_bytes(b"caf\xe9")
    assert "caf\ufffd" in restored(app, "latin.txt")[0].text


@pytest.mark.parametrize("cwd", ["", ".", "/nonexistent/folder", "/srv/" + "x/" * 5_000, "/srv/\0"])
def test_on_another_machine_nothing_comes_back(cwd: str) -> None:
    assert restore(used("app.py"), (), cwd, NO_LIMITS) == []


@pytest.mark.parametrize(
    ("cwd", "name"), [("/proc", "uptime"), ("/proc/self", "status"), ("/sys/kernel", "x"), ("/dev", "x")]
)
def test_the_folders_of_the_system_are_no_projects(tmp_path: Path, cwd: str, name: str) -> None:
    (tmp_path / "link").symlink_to(cwd)

    assert restore(used(name), (), cwd, NO_LIMITS) == []
    assert restore(used(name), (), str(tmp_path / "link"), NO_LIMITS) == []


def test_a_path_that_none_can_be_is_no_use_of_a_file(app: Path) -> None:
    assert restored(app, "secret-" * 1_000) == []


def test_a_folder_that_may_not_be_looked_into_is_not_on_this_machine(
    app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    shown = used("app.py")
    monkeypatch.setattr(Path, "is_dir", refuse)
    assert restore(shown, (), str(app), NO_LIMITS) == []


@pytest.mark.parametrize(("claimed", "back"), [("home/app", True), ("home", False), (".", False), ("/", False)])
def test_a_session_that_claims_the_home_folder_or_one_above_it_gets_nothing(
    tmp_path: Path, claimed: str, back: bool
) -> None:
    project = tmp_path / "home" / "app"
    project.mkdir(parents=True)
    (project / "a.py").write_text("a = 1\n", encoding="utf-8")
    limits = RestoreLimits(home=tmp_path / "home")

    found = restore(used(str(project / "a.py")), (), str(tmp_path / claimed), limits)

    assert [r.has_content for r in found] == [True] * back


def test_what_is_a_file_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "app" / "src").mkdir(parents=True)
    (tmp_path / "app" / "a.py").write_text("x", encoding="utf-8")
    (tmp_path / "b.py").write_text("x", encoding="utf-8")
    is_there = files_of(str(tmp_path / "app"), RestoreLimits())

    assert is_there("a.py")
    assert is_there(str(tmp_path / "app" / "a.py"))
    assert not any(map(is_there, ("src", "../b.py", str(tmp_path / "b.py"), "made_up.py", "n" * 300)))
    assert not files_of("/", RestoreLimits())(str(tmp_path / "b.py"))
    assert not files_of(str(tmp_path), RestoreLimits(home=tmp_path))("b.py")
