"""Files and folders of which others may have put something else in the place: a pipe, a device, a link elsewhere."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

from core.errors import Damaged


def open_ordinary(path: Path | str, follow_links: bool = True) -> BinaryIO:
    """Open an ordinary file to be read; what is none does not block.

    Raises OSError, and ValueError for what is no path: EINVAL for a folder, a pipe or a device, ELOOP for a link that
    is not followed.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(path, flags if follow_links else flags | os.O_NOFOLLOW)
    if S_ISREG(os.fstat(fd).st_mode):
        return os.fdopen(fd, "rb")
    os.close(fd)
    raise OSError(errno.EINVAL, "no ordinary file", str(path))


def refuse_links(*folders: Path) -> None:
    """Raises Damaged where one of the folders is a link: what is kept there would be kept elsewhere."""
    for folder in folders:
        if os.path.islink(folder):
            raise Damaged(f"{folder} is a link, and nothing is kept behind one", "put a folder in its place")
