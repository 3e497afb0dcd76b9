"""Damage: what is reported of it, and what a repair makes of it."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings

from core.context.view import api_messages, messages_of
from core.model import JSON
from core.transcript.chain import load
from core.transcript.check import check
from core.transcript.findings import Finding
from core.transcript.repair import repair
from tests.strategies import STEPS, Transcript, damaged, transcripts

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
SOUND = tuple(name for name in STEPS if name != "dangling")


def checked(folder: Path, data: bytes) -> tuple[list[Finding], bytes, list[dict[str, JSON]]]:
    """The findings, the repaired file, and what is sent for the file."""
    path = folder / "session.jsonl"
    path.write_bytes(data)
    log, chain = load(path, whole=True)
    with log:
        return check(log, chain), b"".join(repair(log)), api_messages(messages_of(log, chain))


def kinds(folder: Path, data: bytes) -> list[tuple[str, int]]:
    return [(f.kind, f.line) for f in checked(folder, data)[0]]


def conversation() -> Transcript:
    transcript = Transcript()
    transcript.prompt("first")
    transcript.calls(2)
    transcript.prompt("second")
    return transcript


@same_folder
@given(transcripts(SOUND))
def test_a_sound_file_is_left_as_it_is(tmp_path: Path, transcript: Transcript) -> None:
    findings, repaired, _ = checked(tmp_path, transcript.data())

    assert repaired == transcript.data()
    assert not [f for f in findings if f.repaired]


@same_folder
@given(damaged())
def test_a_repaired_file_has_the_view_of_the_damaged_one_and_nothing_left_to_repair(
    tmp_path: Path, data: bytes
) -> None:
    _, repaired, sent = checked(tmp_path, data)
    findings, again, sent_again = checked(tmp_path, repaired)

    assert sent_again == sent
    assert again == repaired
    assert not [f for f in findings if f.repaired]
