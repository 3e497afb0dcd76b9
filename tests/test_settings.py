"""Settings: the order of the layers, where values come from, what is said about a bad one."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from core.errors import SettingsError
from core.model import JSON
from core.settings import KEYS, Settings, load


class Folders:
    """A home with a project in it, and a place for the user's own file."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.project = self.home / "shop" / "src"
        self.user = root / "config"
        for folder in (self.project, self.user):
            folder.mkdir(parents=True)

    def load(self, env: Mapping[str, str] | None = None, **overrides: JSON) -> Settings:
        return load(env or {}, home=self.home, project_dir=self.project, user_dir=self.user, overrides=overrides)


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def test_defaults_hold_when_nothing_is_set(folders: Folders) -> None:
    settings = folders.load()

    assert settings.claude_dir == folders.home / ".claude"
    assert (settings.keep_tokens, settings.summarizer, settings.window_tokens) == (20_000, "extractive", None)
    assert settings.origin("keep_tokens") == settings.origin("claude_dir") == "default"


def test_each_layer_wins_over_those_below(folders: Folders) -> None:
    user, project = folders.user / "foldmark.toml", folders.home / "shop" / "foldmark.toml"
    user.write_text("keep_tokens = 1\nrestore_files = 1\nresult_chars = 1\npreview_bytes = 1\n", encoding="utf-8")
    project.write_text("keep_tokens = 2\nrestore_files = 2\nresult_chars = 2\n", encoding="utf-8")
    env = {"FOLDMARK_KEEP_TOKENS": "3", "FOLDMARK_RESTORE_FILES": "3"}

    settings = folders.load(env, keep_tokens=4)

    figures = [settings.keep_tokens, settings.restore_files, settings.result_chars, settings.preview_bytes]
    assert figures == [4, 3, 2, 1]
    keys = ("keep_tokens", "restore_files", "result_chars", "preview_bytes", "results_chars")
    assert [settings.origin(key) for key in keys] == [
        "command line",
        "FOLDMARK_RESTORE_FILES",
        str(project),
        str(user),
        "default",
    ]


def test_an_override_that_is_none_is_not_set(folders: Folders) -> None:
    assert folders.load(keep_tokens=None).origin("keep_tokens") == "default"


def test_the_clients_own_variable_moves_its_folder(folders: Folders) -> None:
    settings = folders.load({"CLAUDE_CONFIG_DIR": "/data/claude"})

    assert settings.claude_dir == Path("/data/claude")
    assert settings.origin("claude_dir") == "CLAUDE_CONFIG_DIR"


def test_our_variable_wins_over_the_clients(folders: Folders) -> None:
    settings = folders.load({"CLAUDE_CONFIG_DIR": "/data/claude", "FOLDMARK_CLAUDE_DIR": "~/mine"})

    assert settings.claude_dir == folders.home / "mine"


def test_the_search_for_a_project_file_ends_at_the_home_folder(folders: Folders) -> None:
    (folders.home / "foldmark.toml").write_text("keep_tokens = 7", encoding="utf-8")

    assert folders.load().keep_tokens == 20_000


def test_a_project_outside_the_home_folder_has_its_file_too(folders: Folders, tmp_path: Path) -> None:
    outside = tmp_path / "srv" / "app"
    outside.mkdir(parents=True)
    (tmp_path / "srv" / "foldmark.toml").write_text("keep_tokens = 7", encoding="utf-8")

    settings = load({}, home=folders.home, project_dir=outside, user_dir=folders.user)

    assert settings.keep_tokens == 7


def test_without_any_file_up_to_the_root_the_defaults_hold(folders: Folders) -> None:
    settings = load({}, home=folders.home, project_dir=Path("/no/such/folder"), user_dir=folders.user)

    assert settings.keep_tokens == 20_000


def test_relative_paths_start_where_they_were_set(folders: Folders) -> None:
    text = "allowed_roots = ['notes', '~', '/srv']\nmodels_file = 'models.toml'"
    (folders.user / "foldmark.toml").write_text(text, encoding="utf-8")

    settings = folders.load()

    assert settings.allowed_roots == (folders.user / "notes", folders.home, Path("/srv"))
    assert settings.models_file == folders.user / "models.toml"


def test_a_variable_holds_several_folders_like_the_systems_path(folders: Folders) -> None:
    settings = folders.load({"FOLDMARK_ALLOWED_ROOTS": os.pathsep.join(["/a", "/b"])})

    assert settings.allowed_roots == (Path("/a"), Path("/b"))


def test_a_command_is_one_in_a_variable_and_several_in_a_file(folders: Folders) -> None:
    (folders.user / "foldmark.toml").write_text("pre_compact = ['a', 'b']", encoding="utf-8")
    assert folders.load().pre_compact == ("a", "b")
    assert folders.load({"FOLDMARK_PRE_COMPACT": "echo a:b"}).pre_compact == ("echo a:b",)


@pytest.mark.parametrize(
    "key",
    [
        "claude_dir",
        "allowed_roots",
        "models_file",
        "summarizer",
        "claude_program",
        "pre_compact",
        "session_start",
        "post_compact",
    ],
)
def test_a_project_cannot_open_folders_send_them_away_or_run_programs(folders: Folders, key: str) -> None:
    (folders.project / "foldmark.toml").write_text(f"{key} = '/etc'", encoding="utf-8")

    with pytest.raises(SettingsError) as caught:
        folders.load()

    assert key in str(caught.value)
    assert "FOLDMARK_" in caught.value.hint


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("keep_tokens = 'many'", "a whole number from 0 to 1,000,000,000, in digits alone, like 60000"),
        ("summary_tokens = '4k'", "a whole number from 3,000 to 12,000, in digits alone, like 12000"),
        ("summary_tokens = 20000", "a whole number from 3,000 to 12,000"),
        ("window_tokens = 8000", "a whole number from 40,000 to 1,000,000,000"),
        ("summary_model = 3", "a text"),
        ("keep_tokens = true", "a whole number from 0 to 1,000,000,000"),
        ("summary_tokens = 4000.0", "a whole number from 3,000 to 12,000"),
        ("result_chars = 0", "a whole number from 1 to 1,000,000,000"),
    ],
)
def test_a_bad_value_names_file_key_and_what_is_allowed(folders: Folders, line: str, allowed: str) -> None:
    file = folders.project / "foldmark.toml"
    file.write_text(line, encoding="utf-8")

    with pytest.raises(SettingsError) as caught:
        folders.load()

    assert str(file) in str(caught.value)
    assert line.partition(" ")[0] in str(caught.value)
    assert caught.value.hint == f"allowed: {allowed}"


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("allowed_roots = 3", "a list of folders"),
        ("pre_compact = 'a'", "a list of shell commands"),
        ("summarizer = 'magic'", "auto, extractive, anthropic, claude, api"),
    ],
)
def test_a_bad_value_of_the_user_is_refused_too(folders: Folders, line: str, allowed: str) -> None:
    (folders.user / "foldmark.toml").write_text(line, encoding="utf-8")

    with pytest.raises(SettingsError) as caught:
        folders.load()

    assert caught.value.hint == f"allowed: {allowed}"


@pytest.mark.parametrize("digits", [300, 4_000, 10_000])
@pytest.mark.parametrize("key", ["keep_tokens", "window_tokens", "summary_tokens", "summary_model", "result_chars.a"])
def test_a_number_that_nothing_can_be_is_a_bad_value_in_few_words(folders: Folders, digits: int, key: str) -> None:
    file = folders.project / "foldmark.toml"
    file.write_text(f"{key} = 0x{digits * 'f'}", encoding="utf-8")

    with pytest.raises(SettingsError) as caught:
        folders.load()

    said = str(caught.value)
    assert said.startswith(f"{file}: {key.partition('.')[0]} cannot be ")
    assert len(said) < len(str(file)) + 120


def test_a_variable_of_thousands_of_digits_is_a_bad_value(folders: Folders) -> None:
    with pytest.raises(SettingsError, match="FOLDMARK_KEEP_TOKENS: keep_tokens cannot be '999"):
        folders.load({"FOLDMARK_KEEP_TOKENS": "9" * 5_000})


def test_no_count_is_without_bounds(folders: Folders) -> None:
    numbers = [key for key in KEYS if isinstance(getattr(folders.load(), key), int)]

    assert len(numbers) >= 15
    for key in (*numbers, "window_tokens"):
        for value in (-1, 10**9 + 1):
            with pytest.raises(SettingsError, match=f"{key} cannot be {value}"):
                folders.load({}, **{key: value})


def test_what_is_wrong_can_be_left_out_and_said(folders: Folders) -> None:
    (folders.user / "foldmark.toml").write_text("keep_tokens = 3\nrestore_files = 'x'\ncolour = 1\n", encoding="utf-8")
    faults: list[SettingsError] = []

    settings = load(
        {"FOLDMARK_KEEP_TOKENS": "many"},
        home=folders.home,
        project_dir=folders.project,
        user_dir=folders.user,
        faults=faults,
    )

    assert (settings.keep_tokens, settings.origin("keep_tokens")) == (3, str(folders.user / "foldmark.toml"))
    assert (settings.restore_files, settings.origin("restore_files")) == (5, "default")
    assert [str(fault).rpartition(": ")[2] for fault in faults] == [
        "keep_tokens cannot be 'many'",
        "restore_files cannot be 'x'",
        "there is no setting 'colour'",
    ]


def test_what_a_project_may_not_set_is_left_out_alone(folders: Folders) -> None:
    file = folders.project / "foldmark.toml"
    file.write_text("claude_dir = '/etc'\nkeep_tokens = 7\nsummarizer = 'api'\n", encoding="utf-8")
    faults: list[SettingsError] = []

    settings = load({}, home=folders.home, project_dir=folders.project, user_dir=folders.user, faults=faults)

    assert (settings.keep_tokens, settings.origin("keep_tokens")) == (7, str(file))
    assert (settings.claude_dir, settings.summarizer) == (folders.home / ".claude", "extractive")
    assert [str(fault) for fault in faults] == [
        f"{file}: claude_dir cannot be set by a project",
        f"{file}: summarizer cannot be set by a project",
    ]


def test_a_fault_says_which_setting_it_is_about(folders: Folders) -> None:
    (folders.user / "foldmark.toml").write_text("= broken", encoding="utf-8")
    (folders.project / "foldmark.toml").write_text(
        "claude_dir = '/'\nkeep_tokens = 'many'\ncolour = 1\n", encoding="utf-8"
    )
    faults: list[SettingsError] = []

    load({}, home=folders.home, project_dir=folders.project, user_dir=folders.user, faults=faults)

    assert [fault.key for fault in faults] == ["", "claude_dir", "keep_tokens", "colour"]


def test_an_unknown_key_is_refused_with_those_that_exist(folders: Folders) -> None:
    (folders.user / "foldmark.toml").write_text("keep_token = 3", encoding="utf-8")

    with pytest.raises(SettingsError) as caught:
        folders.load()

    assert "keep_token" in str(caught.value)
    assert caught.value.hint == "did you mean keep_tokens?"
    (folders.user / "foldmark.toml").write_text("colour = 3", encoding="utf-8")

    with pytest.raises(SettingsError) as caught:
        folders.load()

    assert caught.value.hint.startswith("known: claude_dir, ")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("_cli_parse_args", ["--pre_compact", '["touch ran"]', "--claude_dir", "/etc"]),
        ("_env_file", "x"),
        ("_secrets_dir", "/etc"),
        ("origins", "x"),
        ("_origins", "x"),
        ("__init__", 1),
        ("__struct_fields__", 1),
        ("self", 1),
        ("", 1),
    ],
)
def test_no_key_of_a_file_is_anything_but_a_setting(folders: Folders, key: str, value: JSON) -> None:
    file = folders.project / "foldmark.toml"
    file.write_text(f"{json.dumps(key)} = {json.dumps(value)}", encoding="utf-8")

    with pytest.raises(SettingsError) as caught:
        folders.load()

    assert str(caught.value) == f"{file}: there is no setting {key!r}"


def test_an_unknown_variable_is_left_alone(folders: Folders) -> None:
    assert folders.load({"FOLDMARK_SHARED": "/x"}).keep_tokens == 20_000


@pytest.mark.parametrize(
    "content", [b"keep_tokens =", b"\xff\xfe", b"keep_tokens = 1" + 5_000 * b"0", b"keep_tokens = " + 5_000 * b"["]
)
def test_a_broken_file_is_refused_by_name(folders: Folders, content: bytes) -> None:
    file = folders.user / "foldmark.toml"
    file.write_bytes(content)

    with pytest.raises(SettingsError) as caught:
        folders.load()

    assert str(file) in str(caught.value)


def test_the_process_environment_is_not_read(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEP_TOKENS", "9")
    monkeypatch.setenv("FOLDMARK_KEEP_TOKENS", "9")

    assert folders.load().keep_tokens == 20_000


def test_settings_do_not_change(folders: Folders) -> None:
    settings = folders.load()

    with pytest.raises(AttributeError, match="immutable"):
        settings.keep_tokens = 1  # type: ignore[misc]


def test_a_path_that_is_none_is_named(folders: Folders) -> None:
    (folders.user / "foldmark.toml").write_text("models_file = 3", encoding="utf-8")

    with pytest.raises(SettingsError) as caught:
        folders.load()

    assert "a path" in caught.value.hint


@pytest.mark.parametrize("text", ['"12"', '"1_000"', '" 12 "', '"١٢"', '"²"', "12.0", "true"])
def test_in_a_file_a_number_is_one(folders: Folders, text: str) -> None:
    (folders.user / "foldmark.toml").write_text(f"keep_tokens = {text}", encoding="utf-8")

    with pytest.raises(SettingsError, match="keep_tokens cannot be"):
        folders.load()


@pytest.mark.parametrize("text", ["1_000", " 12 ", "١٢", "²", "+12", "-12", "1e3", "twelve"])
def test_in_a_variable_it_is_plain_digits(folders: Folders, text: str) -> None:
    assert folders.load({"FOLDMARK_KEEP_TOKENS": "0012"}).keep_tokens == 12
    with pytest.raises(SettingsError, match="FOLDMARK_KEEP_TOKENS: keep_tokens cannot be"):
        folders.load({"FOLDMARK_KEEP_TOKENS": text})


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("claude_dir", r'"a\u0000b"'),
        ("models_file", r'"\u0000"'),
        ("allowed_roots", r'["/srv", "~/\u0000"]'),
        ("claude_program", r'"claude\u0000"'),
        ("pre_compact", r'["echo \u0000"]'),
    ],
)
def test_a_text_with_a_nul_byte_is_refused(folders: Folders, key: str, text: str) -> None:
    (folders.user / "foldmark.toml").write_text(f"{key} = {text}", encoding="utf-8")

    with pytest.raises(SettingsError, match=f"{key} cannot be") as caught:
        folders.load()
    assert caught.value.hint.startswith("allowed: ")
