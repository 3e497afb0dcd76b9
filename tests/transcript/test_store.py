from __future__ import annotations

import base64
import errno
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import Damaged, FoldmarkError, IdNotFound, InputError, WriteFailed
from core.model import JSON, Block, Message
from core.transcript import store as store_module
from core.transcript.page import Body
from core.transcript.store import INDEX, Store
from core.transcript.writer import append, write_new
from tests.disk import stored
from tests.faults import failing, kills, outcomes

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n pixels").decode()
WRITING = {f.__code__ for f in (Store._write, Store._add, Store._index, write_new, append)}
"""What writes; each of its lines may be the last before a Ctrl-C."""
IMAGE: Block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}


def message(uuid: str, *blocks: Block) -> Message:
    return Message("user", "prompt", blocks, (uuid,))


def text(value: str) -> Block:
    return {"type": "text", "text": value}


def result(call: str, value: str) -> Block:
    return {"type": "tool_result", "tool_use_id": call, "content": value}


MESSAGES = (
    message("u-one", text("Where is Träumerei?"), IMAGE),
    Message(
        "assistant",
        "response",
        ({"type": "tool_use", "id": "toolu_a", "name": "Grep", "input": {"p": "x"}},),
        ("a-one",),
    ),
    message("u-two", result("toolu_a", "first\nTräumerei is here\nlast\n"), text("Behind it.")),
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "session" / "tool-results")


def files(store: Store) -> dict[str, bytes]:
    if not store.folder.exists():
        return {}
    return {path.name: path.read_bytes() for path in sorted(store.folder.iterdir())}


def found(store: Store, ident: str) -> Body:
    body = stored(store, ident)
    assert body is not None
    return body


def test_what_is_archived_is_read_back_byte_for_byte(store: Store) -> None:
    store.archive("x", MESSAGES, "# Header")
    assert files(store)["compacted-x.md"].startswith(b"# Header\n")
    assert store.read(found(store, "toolu_a")) == "first\nTräumerei is here\nlast\n".encode()
    assert store.read(found(store, "u-one")).startswith("Where is Träumerei?".encode())
    (image,) = [body for body in store.bodies() if body.kind == "image"]
    assert store.read(found(store, image.id)) == base64.b64decode(PIXEL)
    assert {body.id for body in store.bodies()} == {"u-one", "a-one", "u-two", "toolu_a", image.id}


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200) | st.text("`\n\r# ab", max_size=40)
_IDS = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12), min_size=8, max_size=8, unique=True
)


@given(st.lists(_TEXTS, min_size=4, max_size=4), st.lists(_TEXTS, min_size=4, max_size=4), _IDS)
def test_any_text_under_any_id_is_found_and_read_back(
    tmp_path_factory: pytest.TempPathFactory, said: list[str], results: list[str], ids: list[str]
) -> None:
    store = Store(tmp_path_factory.mktemp("store") / "tool-results")
    messages = [message(ids[n], text(said[n])) for n in range(4)]
    messages += [Message("user", "results", (result(ids[4 + n], results[n]),)) for n in range(4)]
    store.archive("x", messages, "# Header")
    for ident, value in zip(ids, said + results, strict=True):
        body = found(store, ident)
        assert store.read(body) == value.encode()
        lines = value.encode().split(b"\n")
        assert body.lines == len(lines) - (lines[-1] == b"")


def test_archiving_the_same_again_writes_nothing(store: Store) -> None:
    store.archive("x", MESSAGES)
    before = {path: path.stat().st_mtime_ns for path in store.folder.iterdir()}
    store.archive("x", MESSAGES)
    assert {path: path.stat().st_mtime_ns for path in store.folder.iterdir()} == before


def test_the_same_messages_give_the_same_bytes(store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path / "other")
    store.archive("x", MESSAGES)
    other.archive("x", MESSAGES)
    assert files(store) == files(other)


def test_the_index_only_grows(store: Store) -> None:
    store.archive("x", MESSAGES)
    index = files(store)[INDEX]
    store.archive("y", [message("u-three", text("more"), IMAGE)])
    assert files(store)[INDEX].startswith(index)
    assert store.read(found(store, "u-three")).startswith(b"more")
    assert len([name for name in files(store) if name.startswith("media-")]) == 1


def test_another_page_of_the_same_name_is_refused_and_the_old_one_stays(store: Store) -> None:
    store.archive("x", MESSAGES)
    before = files(store)
    with pytest.raises(WriteFailed):
        store.archive("x", [message("u-three", text("more"))])
    assert files(store) == before


def test_folder_and_files_are_private_whatever_the_umask(store: Store) -> None:
    mask = os.umask(0)
    try:
        store.archive("x", MESSAGES)
    finally:
        os.umask(mask)
    for folder in (store.folder, store.folder.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in store.folder.iterdir()} == {0o600}


def test_nothing_to_archive_leaves_a_page_and_no_index(store: Store) -> None:
    store.archive("x", [])
    assert list(files(store)) == ["compacted-x.md"]


# Ids


def test_a_whole_id_wins_over_those_that_begin_with_it(store: Store) -> None:
    store.archive("x", [message("u", text("short")), message("u-one", text("long"))])
    assert store.read(found(store, "u")) == b"short"


@pytest.mark.parametrize("ident", ["", "nobody", "../index.jsonl"])
def test_an_unknown_id_is_none(store: Store, ident: str) -> None:
    assert stored(store, ident) is None
    store.archive("x", MESSAGES)
    assert stored(store, ident) is None


def test_of_two_bodies_with_one_id_the_newer_is_found(store: Store) -> None:
    store.archive("x", [message("u", text("old"))])
    store.archive("y", [message("u", text("new"))])
    assert store.read(found(store, "u")) == b"new"


# What the client stored itself


def test_the_files_of_the_client_are_found_by_their_names(store: Store) -> None:
    store.archive("x", MESSAGES)
    (store.folder / "toolu_b.txt").write_bytes(b"one\ntwo\n")
    (store.folder / "mcp-server-tool-1-ab.json").write_bytes(b"[]")
    (store.folder / "blob.png").write_bytes(b"")
    body = found(store, "toolu_b")
    assert (body.kind, body.file, body.size) == ("output", "toolu_b.txt", 8)
    assert store.read(body) == b"one\ntwo\n"
    assert store.read(found(store, "mcp-server-tool-1-ab")) == b"[]"
    assert stored(store, "blob") is None


def test_the_whole_output_wins_over_the_preview_that_was_archived(store: Store) -> None:
    store.archive("x", MESSAGES)
    (store.folder / "toolu_a.txt").write_bytes(b"all of it")
    assert store.read(found(store, "toolu_a")) == b"all of it"


def test_a_client_file_that_is_indexed_stands_for_what_the_index_says(store: Store) -> None:
    store.folder.mkdir(parents=True)
    (store.folder / "toolu_b.txt").write_bytes(b"one\ntwo\n")
    indexed(store, Body("other", "result", "Bash", "toolu_b.txt", 4, 4, 2, 1, ""))
    assert [body.id for body in store.bodies()] == ["other"]
    assert store.read(found(store, "other")) == b"two\n"


# Damage


def indexed(store: Store, *lines: Body | bytes) -> None:
    store.folder.mkdir(parents=True, exist_ok=True)
    with (store.folder / INDEX).open("ab") as file:
        for line in lines:
            file.write(line if isinstance(line, bytes) else msgspec.json.encode(line) + b"\n")


def test_torn_and_foreign_index_lines_hide_no_others(store: Store) -> None:
    store.archive("x", MESSAGES)
    indexed(store, b"null\n", b"\xff\n", b'{"id":"\xff"}\n', b"\n", b'{"id": "torn')
    store.archive("y", [message("u-three", text("more"))])
    assert store.read(found(store, "u-three")) == b"more"
    assert store.read(found(store, "toolu_a"))


def test_a_file_that_is_gone_is_missing_by_the_name_of_its_id(store: Store) -> None:
    store.archive("x", MESSAGES)
    store.page("x").unlink()
    body = found(store, "toolu_a")
    with pytest.raises(IdNotFound) as caught:
        store.read(body)
    assert str(caught.value) == f"toolu_a is missing: {store.page('x')} is gone"


@pytest.mark.parametrize(
    "change", [lambda raw: raw[:-60], lambda raw: raw.replace(b"first", b"other"), lambda raw: raw[:0]]
)
def test_bytes_that_are_not_those_that_were_stored_are_damaged(store: Store, change: Callable[[bytes], bytes]) -> None:
    store.archive("x", MESSAGES)
    store.page("x").write_bytes(change(store.page("x").read_bytes()))
    with pytest.raises(Damaged) as caught:
        store.read(found(store, "toolu_a"))
    assert "toolu_a" in str(caught.value)


@pytest.mark.parametrize(("offset", "size"), [(-1, 3), (0, -1), (0, 10**30), (10**30, 1)])
def test_places_that_no_file_has_are_damaged(store: Store, offset: int, size: int) -> None:
    store.archive("x", MESSAGES)
    indexed(store, Body("hostile", "result", "", "compacted-x.md", offset, size, 1, 1, ""))
    with pytest.raises(Damaged):
        store.read(found(store, "hostile"))


@pytest.mark.parametrize(
    "file", ["../secret", "/etc/hostname", "..", ".", "", "a/b", "nul\0", "link.txt", "sub", "pipe"]
)
def test_a_file_outside_the_folder_is_never_opened(store: Store, tmp_path: Path, file: str) -> None:
    (tmp_path / "session").mkdir()
    (tmp_path / "session" / "secret").write_bytes(b"secret")
    store.folder.mkdir()
    (store.folder / "link.txt").symlink_to("../secret")
    (store.folder / "sub").mkdir()
    os.mkfifo(store.folder / "pipe")
    body = Body("hostile", "result", "", file, 0, 6, 1, 1, "")
    indexed(store, body)
    assert stored(store, "link") is None
    with pytest.raises(Damaged):
        store.read(body)
    store.remove()
    assert (tmp_path / "session" / "secret").read_bytes() == b"secret"


def test_a_page_is_not_written_through_a_link(store: Store, tmp_path: Path) -> None:
    store.folder.mkdir(parents=True)
    (store.folder / "compacted-x.md").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WriteFailed):
        store.archive("x", MESSAGES)
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_may_not_be_read_is_named(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.archive("x", MESSAGES)
    body = found(store, "toolu_a")

    def refuse(path: object, *args: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(InputError) as caught:
        store.read(body)
    assert body.file in str(caught.value)


def test_a_folder_that_may_not_be_read_is_no_empty_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put("call1", "output")

    def refuse(path: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(InputError, match="tool-results: Permission denied"):
        store.files()


def test_a_file_that_goes_while_the_folder_is_read_hides_no_other(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("call1", "output")
    scandir = os.scandir

    class Gone:
        name = "call0.txt"

        def is_file(self, *, follow_symlinks: bool) -> bool:
            raise FileNotFoundError(errno.ENOENT, "No such file")

    @contextmanager
    def with_gone(path: Path) -> Iterator[list[object]]:
        with scandir(path) as entries:
            yield [Gone(), *entries]

    monkeypatch.setattr(os, "scandir", with_gone)
    assert {*store.files()} == {"call1.txt", INDEX}


def test_an_empty_store_has_nothing(store: Store) -> None:
    assert store.bodies() == ()


# Failures


def whole(store: Store, messages: Sequence[Message]) -> None:
    Store(store.folder).archive("x", messages)
    bodies = store.bodies()
    assert {body.id for body in bodies} >= {m.uuid for m in messages if m.kind != "results"}
    for body in bodies:
        store.read(body)


@pytest.mark.parametrize(("error", "half"), [(errno.ENOSPC, False), (errno.ENOSPC, True), (errno.EACCES, False)])
def test_whatever_fails_nothing_is_added_and_the_next_run_is_whole(store: Store, error: int, half: bool) -> None:
    store.folder.parent.parent.mkdir(exist_ok=True)
    seen = 0
    for outcome in outcomes(lambda: store.archive("x", MESSAGES), error, half):
        assert isinstance(outcome, FoldmarkError) or stored(store, "toolu_a")
        assert outcome is None or not (store.folder.parent).exists()
        store.remove()
        assert files(store) == {}
        seen += 1
    assert seen > 10
    whole(store, MESSAGES)


def interrupted(run: Callable[[], object], at: int) -> bool:
    """Whether a Ctrl-C came when `run` was about to execute line `at` of what writes into a store."""
    lines = 0

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        nonlocal lines
        if frame.f_code not in WRITING:
            return trace if event == "call" and lines < at else None
        lines += event == "line"
        if event == "line" and lines == at:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_whenever_it_is_interrupted_nothing_is_added(store: Store) -> None:
    store.put("other", "An output.")
    before, at = files(store), 0
    while interrupted(lambda: Store(store.folder).archive("x", MESSAGES), at := at + 1):
        assert files(store) == before
    assert at > 20
    whole(store, MESSAGES)


def test_each_file_is_synced_once(store: Store) -> None:
    store.folder.mkdir(parents=True)
    with failing(0, 0) as steps:
        store.archive("x", MESSAGES)
    image, page, index = 1, 1, 1
    assert steps.count("fsync") == 2 * (image + page + index)  # the file, and its name in the folder


def test_whatever_fails_older_pages_stay(store: Store) -> None:
    store.archive("a", [message("u-old", text("old"))])
    before = files(store)
    for outcome in outcomes(lambda: store.archive("x", MESSAGES), errno.ENOSPC, half=True):
        if outcome is not None:
            assert files(store) == before
        store.remove()
        store.archive("a", [message("u-old", text("old"))])


def test_killed_at_any_step_the_next_run_is_whole_and_clean(store: Store) -> None:
    clean = Store(store.folder.parent / "clean")
    whole(clean, MESSAGES)
    count = 0
    for _ in kills(lambda: store.archive("x", MESSAGES)):
        whole(store, MESSAGES)
        write_new(store.folder / "next", [])  # a write sweeps what the killed process left
        (store.folder / "next").unlink()
        assert files(store) == files(clean)
        store.remove()
        count += 1
    assert count > 10


# Removal


def test_removing_leaves_nothing_of_ours(store: Store) -> None:
    store.archive("x", MESSAGES)
    store.archive("y", [message("u-three", text("more"))])
    store.remove()
    assert not store.folder.parent.exists()


def test_removing_leaves_what_the_client_stored(store: Store) -> None:
    store.archive("x", MESSAGES)
    (store.folder / "toolu_b.txt").write_bytes(b"one")
    store.remove()
    assert files(store) == {"toolu_b.txt": b"one"}


def test_removing_an_empty_store_does_nothing(store: Store) -> None:
    store.remove()
    assert not store.folder.exists()


def test_the_index_holds_the_fields_that_other_programs_read(store: Store) -> None:
    store.archive("x", [message("u-one", text("one\ntwo"))], "# Header")
    (line,) = files(store)[INDEX].splitlines()
    body = msgspec.json.decode(line)
    assert list(body) == ["id", "kind", "name", "file", "offset", "bytes", "line", "lines", "sha256"]
    assert body["file"] == "compacted-x.md"
    assert store.read(found(store, "u-one")) == b"one\ntwo"


# Bodies of their own


@pytest.mark.parametrize(
    ("content", "file", "raw"),
    [
        ("first\nTräumerei\n", "toolu_b.txt", "first\nTräumerei\n".encode()),
        ("", "toolu_b.txt", b""),
        ([text("a"), text("b")], "toolu_b.json", b'[{"type":"text","text":"a"},{"type":"text","text":"b"}]'),
    ],
)
def test_one_body_is_found_read_and_listed_once(store: Store, content: JSON, file: str, raw: bytes) -> None:
    assert store.put("toolu_b", content, "Bash") == store.folder / file
    body = found(store, "toolu_b")
    assert (body.kind, body.name, body.lines) == ("output", "Bash", len(raw.splitlines()))
    assert store.read(body) == raw
    assert [b.id for b in store.bodies()] == ["toolu_b"]


def test_an_image_is_put_under_the_id_of_its_content_once_with_that_of_a_page(store: Store) -> None:
    store.archive("x", MESSAGES)
    before = files(store)
    path = store.put("whatever", IMAGE)
    assert path.read_bytes() == base64.b64decode(PIXEL)
    assert files(store) == before


def test_putting_the_same_again_writes_nothing(store: Store) -> None:
    store.put("toolu_b", "text")
    before = {path: path.stat().st_mtime_ns for path in store.folder.iterdir()}
    store.put("toolu_b", "text")
    assert {path: path.stat().st_mtime_ns for path in store.folder.iterdir()} == before


def test_another_content_under_the_same_id_is_refused(store: Store) -> None:
    store.put("toolu_b", "text")
    before = files(store)
    with pytest.raises(WriteFailed):
        store.put("toolu_b", "other text")
    assert files(store) == before


def test_many_are_put_with_one_look_at_the_index(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put_all((f"old{n}", f"text {n}", "Bash") for n in range(20))
    decode, lines = store_module._decoded, list[bytes]()

    def decoded(line: bytes) -> Body | None:
        lines.append(line)
        return decode(line)

    monkeypatch.setattr(store_module, "_decoded", decoded)
    named = store.put_all((f"new{n}", f"text {n}", "Bash") for n in range(20))
    assert len([line for line in lines if line]) == 20
    assert named == [f"new{n}.txt" for n in range(20)]
    assert all(store.read(found(store, f"{age}{n}")) == b"text %d" % n for n in range(20) for age in ("old", "new"))


@pytest.mark.parametrize("others", [("b", "another"), ("toolu_b", "another")])
def test_of_many_all_are_put_or_none(store: Store, others: tuple[str, str]) -> None:
    store.put("toolu_b", "text")
    before = files(store)
    with pytest.raises(WriteFailed):
        store.put_all([("a", "text", ""), ("b", "text", ""), (*others, "")])
    assert files(store) == before
    assert store.put_all([]) == []


def test_an_id_that_is_no_name_of_a_file_is_found_all_the_same(store: Store) -> None:
    path = store.put("../../up", "text")
    assert path.parent == store.folder
    assert store.read(found(store, "../../up")) == b"text"


def test_a_body_that_was_changed_is_damaged_and_one_that_is_gone_is_missing(store: Store) -> None:
    path = store.put("toolu_b", "text")
    body = found(store, "toolu_b")
    path.write_bytes(b"texX")
    with pytest.raises(Damaged):
        store.read(body)
    path.unlink()
    with pytest.raises(IdNotFound):
        store.read(body)


def test_whatever_fails_no_body_is_half_there(store: Store) -> None:
    store.folder.parent.parent.mkdir(exist_ok=True)
    count = 0
    for outcome in outcomes(lambda: store.put("toolu_b", "text" * 1_000), errno.ENOSPC, half=True):
        assert outcome is None or files(store) == {}
        store.remove()
        count += 1
    assert count > 6


def test_killed_at_any_step_the_next_put_is_whole(store: Store) -> None:
    store.folder.mkdir(parents=True)
    for _ in kills(lambda: store.put("toolu_b", "text" * 1_000)):
        store.put("toolu_b", "text" * 1_000)
        assert store.read(found(store, "toolu_b")) == b"text" * 1_000
        store.remove()
        store.folder.mkdir(parents=True, exist_ok=True)


# At once, and among what others put there


def test_of_two_that_store_the_same_at_once_neither_takes_the_page_of_the_other(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[threading.Thread] = []

    def write(path: Path, pieces: Sequence[bytes]) -> None:
        if path.name == INDEX and not others:
            others.append(threading.Thread(target=Store(store.folder).archive, args=("p", MESSAGES)))
            others[0].start()
            others[0].join(0.05)  # it waits for the folder
        write_new(path, pieces)

    monkeypatch.setattr("core.transcript.store.write_new", write)
    store.archive("p", MESSAGES)
    others[0].join()

    assert set(files(store)) >= {"compacted-p.md", INDEX}
    assert all(store.read(body) for body in store.bodies())


def test_an_index_that_is_made_at_the_last_moment_is_appended_to(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(path: Path, pieces: Sequence[bytes]) -> None:
        if path.name == INDEX:
            path.write_bytes(b"theirs\n")
        write_new(path, pieces)

    monkeypatch.setattr("core.transcript.store.write_new", write)
    store.put("toolu_1", "mine")

    assert files(store)[INDEX].startswith(b"theirs\n{")


def test_only_what_was_added_is_taken_back(store: Store) -> None:
    store.archive("old", MESSAGES)
    before = files(store)
    again = Store(store.folder)
    again.archive("old", MESSAGES)
    again.put("toolu_1", "mine")

    again.take_back()

    assert files(store) == before


@pytest.mark.parametrize(
    "line", [b"", b'{"id":"t","kind":"output","name":"","file":"toolu_2.txt","offset":0,"bytes":6,']
)
def test_removing_leaves_what_the_client_wrote_over_ours_or_an_index_lays_claim_to(store: Store, line: bytes) -> None:
    store.put("toolu_1", "mine")
    (store.folder / "toolu_1.txt").write_text("the client's")
    (store.folder / "toolu_2.txt").write_text("theirs")
    if line:
        append(store.folder / INDEX, line + b'"line":1,"lines":1,"sha256":""}\n')

    store.remove()

    assert [*files(store)] == ["toolu_1.txt", "toolu_2.txt"]


@pytest.mark.parametrize("which", ["folder", "parent"])
def test_a_store_behind_a_link_is_neither_read_nor_written(store: Store, tmp_path: Path, which: str) -> None:
    store.archive("p", MESSAGES)
    body = store.bodies()[0]
    linked = store.folder if which == "folder" else store.folder.parent
    linked.rename(tmp_path / "elsewhere")
    linked.symlink_to(tmp_path / "elsewhere")

    for run in (store.bodies, lambda: store.read(body), lambda: store.archive("q", MESSAGES), store.remove):
        with pytest.raises(Damaged, match="is a link"):
            run()
    assert not [*(tmp_path / "elsewhere").rglob("compacted-q.md")]


def test_a_file_where_the_folder_would_be_is_no_store(tmp_path: Path) -> None:
    store = Store.beside(tmp_path / "transcript.jsonl")
    (tmp_path / "transcript").write_text("{}")

    assert store.bodies() == ()
    with pytest.raises(IdNotFound):
        store.content("x.md")
    store.remove()
    with pytest.raises(WriteFailed):
        store.put("toolu_1", "x")


@pytest.mark.parametrize("page_first", [True, False])
def test_an_output_with_a_file_of_its_own_is_whole_and_wins_over_what_a_page_shows_of_it(
    store: Store, page_first: bool
) -> None:
    """A page holds what the model saw last: that may be the line which stands for the output."""
    steps: list[Callable[[], object]] = [
        lambda: store.archive("x", MESSAGES),
        lambda: store.put("toolu_a", "all of it"),
    ]
    for step in steps if page_first else steps[::-1]:
        step()
    assert store.read(found(store, "toolu_a")) == b"all of it"


def test_what_another_store_finds_under_some_ids_is_found_here_too(store: Store, tmp_path: Path) -> None:
    old = Store(tmp_path / "old" / "tool-results")
    old.archive("snip-1", MESSAGES, "# Header", "snip-1")
    old.put("toolu_b", "all of it", "Bash")
    old.put("toolu_c", "not this")
    old.put("toolu_d", "gone")
    (old.folder / "toolu_d.txt").unlink()
    (old.folder / "toolu_e.txt").write_text("a client's", encoding="utf-8")

    store.adopt(old, ["snip-1", "toolu_b", "toolu_d", "toolu_e", "nothing"])

    held = files(old)
    old.put("another", {**IMAGE, "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}})
    shown = next(name for name in held if name.startswith("media-"))
    names = {"compacted-snip-1.md", shown, "toolu_b.txt", "toolu_e.txt"}
    assert {name: held[name] for name in names} == {n: c for n, c in files(store).items() if n != INDEX}
    assert store.read(found(store, "toolu_a")) == old.read(found(old, "toolu_a"))
    assert stored(store, "toolu_d") is None
    before = files(store)
    store.adopt(old, ["snip-1", "toolu_b", "nothing"])
    assert files(store) == before


def test_where_nothing_is_found_nothing_is_made(store: Store, tmp_path: Path) -> None:
    store.adopt(Store(tmp_path / "old" / "tool-results"), ["toolu_a"])
    assert not store.folder.exists()
