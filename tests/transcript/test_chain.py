"""The active chain: which rows the next request is made of."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.context.view import api_messages, messages_of
from core.model import block_text
from core.transcript import reader
from core.transcript.chain import Chain, load
from tests.strategies import Transcript, damaged, transcripts

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def written(folder: Path, data: bytes) -> Path:
    path = folder / "session.jsonl"
    path.write_bytes(data)
    return path


def texts(path: Path, whole: bool = False) -> list[str]:
    """The text of each message that is sent; calls and results by their ids."""
    log, chain = load(path, whole)
    with log:
        return [
            block_text(b) or str(b.get("id") or b.get("tool_use_id"))
            for m in messages_of(log, chain)
            for b in m.content
        ]


def chain_of(folder: Path, transcript: Transcript) -> Chain:
    log, chain = load(written(folder, transcript.data()))
    log.close()
    return chain


@same_folder
@given(transcripts() | damaged(), st.integers(40, 900))
def test_a_large_file_gives_the_same_view_read_from_its_end_as_read_whole(
    tmp_path: Path, given_: Transcript | bytes, batch: int
) -> None:
    path = written(tmp_path, given_ if isinstance(given_, bytes) else given_.data())

    with patch.multiple(reader, WHOLE_BYTES=0, BATCH_BYTES=batch):
        tail, tail_chain = load(path)
        whole, whole_chain = load(path, whole=True)
    with tail, whole:
        assert tail_chain.entries == whole_chain.entries
        assert (tail_chain.boundary, tail_chain.leaf) == (whole_chain.boundary, whole_chain.leaf)
        assert api_messages(messages_of(tail, tail_chain)) == api_messages(messages_of(whole, whole_chain))


@same_folder
@given(transcripts() | damaged(), st.integers(40, 900))
def test_the_size_of_the_batches_has_no_say(tmp_path: Path, given_: Transcript | bytes, batch: int) -> None:
    path = written(tmp_path, given_ if isinstance(given_, bytes) else given_.data())

    at_once = reader.open_log(path, whole=True)
    with patch.object(reader, "BATCH_BYTES", batch):
        in_pieces = reader.open_log(path, whole=True)

    with at_once, in_pieces:
        assert in_pieces.entries == at_once.entries
