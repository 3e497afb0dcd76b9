"""The store of a session: what was taken out of its transcript, as plain files beside it, with an index by id.

    <session id>/tool-results/compacted-<name>.md    one page per compaction (see page.py)
                              <call id>.txt, .json   one output (see blob.py), also of those that the client stored
                              media-<hash>.<type>    images and documents
                              index.jsonl            one line per body

The index grows, and loses only the lines of what is taken back; a line that cannot be read hides no other.  Nothing
outside the folder is ever opened.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import msgspec

from core.errors import Damaged, FoldmarkError, IdNotFound, InputError, WriteFailed
from core.model import JSON, UNDECODABLE, Message
from core.redact.values import redact_json, redact_messages
from core.transcript.blob import stored_blob
from core.transcript.live import FileState
from core.transcript.locks import drop_empty, holding
from core.transcript.ordinary import open_ordinary, refuse_links
from core.transcript.page import Body, body_of, render
from core.transcript.projects import own_folder
from core.transcript.writer import append, replace, write_new

INDEX = "index.jsonl"
PAGE_PREFIX = "compacted-"
_MEDIA_PREFIX = "media-"
_CLIENT_SUFFIXES = (".txt", ".json")
"""Files that the client stores large outputs in, named after the call or as the row of the result says."""


@dataclass(frozen=True, slots=True)
class Store:
    """The stored bodies of one session; the folder need not exist before something is stored."""

    folder: Path
    written: dict[str, None] = field(default_factory=dict, compare=False, repr=False)
    """The files that this object wrote, or found written as they should be; not those that the client did."""
    created: dict[str, None] = field(default_factory=dict, compare=False, repr=False)
    """Of these, the files that were not there before."""
    _holds: list[Path] = field(default_factory=list, compare=False, repr=False)

    @classmethod
    def beside(cls, transcript: Path) -> Store:
        """The store of a transcript, where the client keeps the large outputs of that session too."""
        return cls(own_folder(transcript) / "tool-results")

    def page(self, name: str) -> Path:
        """Where `archive` writes the page of that name."""
        return self.folder / f"{PAGE_PREFIX}{name}.md"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other Foldmark processes from changing the store; who holds it already goes on.

        An empty folder is not left.  Raises WriteFailed, Damaged where a link leads elsewhere.
        """
        if self._holds:
            yield
            return
        self._refuse_links()
        with holding(self.folder):
            self._holds.append(self.folder)
            try:
                yield
            finally:
                self._holds.clear()

    def archive(self, name: str, messages: Sequence[Message], header: str = "", ident: str = "") -> None:
        """Store messages, without secrets, as `compacted-<name>.md`; when it returns, all is on the disk and indexed.

        With an `ident`, that finds all of them together.
        The same messages again write nothing.  Raises WriteFailed (also for another page of that name): then
        nothing was added.
        """
        page = render(self.page(name).name, header, redact_messages(messages), ident)
        files = {file: [content] for file, content in page.media.items()}
        self.write({**files, page.file: page.pieces}, page.bodies)

    def put(self, ident: str, content: JSON, name: str = "") -> Path:
        """Store one body, the content of a tool result (`name` is the tool) or an image or document, as its own file.

        Secrets in it are not stored.  When it returns, the body is on the disk and indexed; the same again writes
        nothing.  An image or document is found by the id of its blob.  Raises WriteFailed (also where another content
        has the id), Damaged for what is nested too deeply to be written: then nothing was added.
        """
        return self.folder / self.put_all([(ident, content, name)])[0]

    def put_all(self, contents: Iterable[tuple[str, JSON, str]]) -> list[str]:
        """Store many bodies (id, content and tool of each) as `put` does one; returns their files.

        Raises as `put`: then none was added.
        """
        blobs = [(stored_blob(ident, redact_json(content)[0]), name) for ident, content, name in contents]
        files = {blob.file: [blob.content] for blob, _ in blobs}
        if any(files[blob.file] != [blob.content] for blob, _ in blobs):
            raise WriteFailed(f"{self.folder}: two contents would have the same name")
        if blobs:
            self.write(files, [body_of(blob, name) for blob, name in blobs])
        return [blob.file for blob, _ in blobs]

    def adopt(self, other: Store, idents: Collection[str]) -> None:
        """Store what another store finds under these ids, in files of the same names, with the media of its pages.

        What is gone there stays gone.  Raises WriteFailed: then nothing was added.
        """
        bodies = other.bodies()
        files = other._contents(body.file for body in bodies if body.id in idents)
        pages = [content for file, content in files.items() if file.startswith(PAGE_PREFIX)]
        media = {body.file for body in bodies if body.file.startswith(_MEDIA_PREFIX)}
        files |= other._contents(file for file in media if any(f"({file})".encode() in page for page in pages))
        if files:
            self.write({f: [c] for f, c in files.items()}, [body for body in bodies if body.file in files])

    def _contents(self, files: Iterable[str]) -> dict[str, bytes]:
        """The files, by their names, that are there."""
        found: dict[str, bytes] = {}
        for file in dict.fromkeys(files):
            with contextlib.suppress(InputError):
                found[file] = self.content(file)
        return found

    def bodies(self) -> tuple[Body, ...]:
        """All bodies, those of the index first.

        Of several with one id, the newest; but a file of its own (the client's first) wins over a page, which holds
        what the model saw last.
        """
        found: dict[str, Body] = {}
        for body in filter(None, map(_decoded, self._lines())):
            if body.id not in found or _is_on_page(found[body.id]) or not _is_on_page(body):
                found[body.id] = body
        listed = {body.file for body in found.values()}
        for file, size in sorted(self.files().items()):
            if file.endswith(_CLIENT_SUFFIXES) and file not in listed:
                ident = Path(file).stem
                found[ident] = Body(ident, "output", "", file, 0, size, 1, 0, "")
        return tuple(found.values())

    def files(self) -> dict[str, int]:
        """The files that are there, by name, with their sizes in bytes; an index may list others, which are gone.

        Raises InputError where the folder cannot be read, Damaged for a link in its place.
        """
        self._refuse_links()
        found: dict[str, int] = {}
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                        if entry.is_file(follow_symlinks=False):
                            found[entry.name] = entry.stat(follow_symlinks=False).st_size
        except (FileNotFoundError, NotADirectoryError):  # no store
            return {}
        except OSError as error:
            raise InputError(f"{self.folder}: {error.strerror}", "check who may read it") from None
        return found

    def read(self, body: Body) -> bytes:
        """The bytes of a body, exactly as stored.

        Raises IdNotFound when its file is gone, Damaged when the bytes are not those that were stored.
        """
        raw = None
        with self._open(body.file, body.id) as file:
            if 0 <= body.offset <= body.offset + body.size <= os.fstat(file.fileno()).st_size:
                file.seek(body.offset)
                raw = file.read(body.size)
        if raw is None or (body.sha256 and hashlib.sha256(raw).hexdigest() != body.sha256):
            raise Damaged(f"{body.id}: {self.folder / body.file} was changed since it was stored", "look into the file")
        return raw

    def content(self, file: str) -> bytes:
        """The bytes of a file of the store; raises IdNotFound when it is gone."""
        with self._open(file, file) as opened:
            return opened.read()

    def remove(self) -> None:
        """Remove all that was stored here; the folder goes with it unless the client stored something there."""
        lines = self._lines()
        if not lines:
            drop_empty(self.folder)
            return
        with self.locked():
            for file in sorted(self._ours(body for body in map(_decoded, lines) if body)):
                _unlink(self.folder / file)
            _unlink(self.folder / INDEX)

    def take_back(self) -> None:
        """Remove what this object added, when nothing came to lean on it."""
        self.forget(self.created)
        self.created.clear()

    def forget(self, files: Collection[str]) -> None:
        """Remove these files and their lines in the index; of files that it does not list, nothing."""
        if self._lines():
            with self.locked():
                self._forget(files)

    def _forget(self, files: Collection[str]) -> None:
        lines = [line for line in self._lines() if line]
        of_line = {line: body.file for line in lines if (body := _decoded(line))}
        gone = {file for file in of_line.values() if file in files}
        ours = self._ours(body for body in map(_decoded, lines) if body and body.file in gone)
        if not gone:
            return
        index = self.folder / INDEX
        left = [line + b"\n" for line in lines if of_line.get(line) not in gone]
        if left:
            replace(index, left, FileState.of(index))
        else:
            _unlink(index)
        for file in sorted(ours):
            _unlink(self.folder / file)

    def _ours(self, bodies: Iterable[Body]) -> set[str]:
        """The files of the bodies; of those that may be a client's by their names, the ones that are as we wrote them.

        The client writes its own over ours when a call has the id of one that we stored.
        """
        return {
            body.file for body in bodies if _is_plain(body.file) and (_is_named_by_us(body) or self._is_as_put(body))
        }

    def _is_as_put(self, body: Body) -> bool:
        try:
            return hashlib.sha256(self.content(body.file)).hexdigest() == body.sha256
        except InputError:  # gone
            return False

    def write(self, files: Mapping[str, Sequence[bytes]], bodies: Sequence[Body]) -> None:
        """Write the files and index the bodies in them; raises WriteFailed: then nothing was added."""
        with self.locked():
            self._write(files, bodies)

    def _write(self, files: Mapping[str, Sequence[bytes]], bodies: Sequence[Body]) -> None:
        listed = {body.file for body in map(_decoded, self._lines()) if body}
        added = {file: pieces for file, pieces in files.items() if not self._is_there(file, pieces)}
        there = files.keys() - added.keys() - listed
        clients = {body.file for body in bodies if body.file in there and _is_clients(body)}
        begun: list[str] = []
        try:
            for file, pieces in added.items():
                self._add(file, pieces, begun)
            self._index([body for body in bodies if body.file not in clients])
            self.written.update(dict.fromkeys(file for file in files if file not in clients))
            self.created.update(dict.fromkeys(added))
        except BaseException:  # Ctrl-C too, which comes between any two steps
            ours = [file for file in begun if self._is_there(file, files[file])]
            with contextlib.suppress(FoldmarkError):  # else the files stay with their lines
                self._forget({*ours} - listed)
                for file in ours:
                    _unlink(self.folder / file)
            raise

    def _is_there(self, file: str, pieces: Sequence[bytes]) -> bool:
        """Whether a file is there as it would be written."""
        try:
            return self.content(file) == b"".join(pieces)
        except InputError:
            return False

    def _add(self, file: str, pieces: Sequence[bytes], begun: list[str]) -> None:
        begun.append(file)
        try:
            write_new(self.folder / file, pieces)
        except FoldmarkError:  # what stands there is another's
            begun.pop()
            raise

    def _index(self, bodies: Sequence[Body]) -> None:
        known = set(self._lines())
        lines = [line for line in map(msgspec.json.encode, bodies) if line not in known]
        block = b"".join(line + b"\n" for line in dict.fromkeys(lines))
        path = self.folder / INDEX
        if block and path.exists():
            append(path, block)
        elif block:
            try:
                write_new(path, [block])
            except WriteFailed:
                if not path.exists():  # else it was made meanwhile: a disk without locks
                    raise
                append(path, block)

    def _refuse_links(self) -> None:
        refuse_links(self.folder.parent, self.folder)

    def _lines(self) -> list[bytes]:
        try:
            with self._open(INDEX, INDEX) as file:
                return file.read().split(b"\n")
        except IdNotFound:
            return []

    def _open(self, file: str, ident: str) -> BinaryIO:
        """A file of the folder, which no link leads out of."""
        path = self.folder / file
        outside = Damaged(f"{ident}: {file!r} is no file of {self.folder}", "it was not Foldmark that wrote this")
        if not _is_plain(file):
            raise outside
        self._refuse_links()
        try:
            return open_ordinary(path, follow_links=False)
        except (FileNotFoundError, NotADirectoryError):  # no store: a file may be where the folder would be
            hint = "it was removed, or the session was moved without its folder"
            raise IdNotFound(f"{ident} is missing: {path} is gone", hint) from None
        except OSError as error:
            is_outside = error.errno in (errno.ELOOP, errno.EINVAL)
            raise (outside if is_outside else InputError(f"{path}: {error.strerror}")) from None


def _is_plain(file: str) -> bool:
    return file not in ("", ".", "..") and not {"/", "\0"} & set(file)


def _is_on_page(body: Body) -> bool:
    return body.file.startswith(PAGE_PREFIX)


def _is_named_by_us(body: Body) -> bool:
    return body.file.startswith((PAGE_PREFIX, _MEDIA_PREFIX))


def _is_clients(body: Body) -> bool:
    """Whether the client would have stored the body under this name; then it is found without the index."""
    return body.file.endswith(_CLIENT_SUFFIXES) and Path(body.file).stem == body.id


def _decoded(line: bytes) -> Body | None:
    try:
        return msgspec.json.decode(line, type=Body)
    except UNDECODABLE:  # torn, or not ours
        return None


def _unlink(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
