"""What stands in the place of a file and is none."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from core.errors import Damaged
from core.transcript.ordinary import open_ordinary, refuse_links


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    return path


def test_an_ordinary_file_is_read(file: Path) -> None:
    with open_ordinary(file) as opened:
        assert opened.read() == b"content"


def test_a_link_is_followed_or_not(file: Path) -> None:
    link = file.with_name("link")
    link.symlink_to(file)
    with open_ordinary(link) as opened:
        assert opened.read() == b"content"
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        open_ordinary(link, follow_links=False)


def test_a_pipe_and_a_folder_are_no_files_and_nothing_waits(file: Path) -> None:
    os.mkfifo(file.with_name("pipe"))
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for path in (file.with_name("pipe"), file.parent, Path(os.devnull)):
        with pytest.raises(OSError, match="no ordinary file") as caught:
            open_ordinary(path)
        assert (caught.value.errno, caught.value.filename) == (errno.EINVAL, str(path))
    assert not before or len(os.listdir("/proc/self/fd")) == before


def test_a_folder_that_is_a_link_is_refused(file: Path) -> None:
    refuse_links(file.parent, file.parent / "not there")
    link = file.with_name("elsewhere")
    link.symlink_to(file.parent)
    with pytest.raises(Damaged, match=str(link)):
        refuse_links(file.parent, link)
