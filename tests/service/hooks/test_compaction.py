"""Before a compaction its summary is told what to keep; after it the model gets what the summary did not say."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from core.errors import Damaged, InputError
from core.model import JSON
from core.service.hooks import answer
from core.service.hooks.session_start import COLD_TOKENS
from core.service.hooks.views import MOST_BYTES
from core.testing import Transcript
from tests.service.hooks.build import USUAL, ask, specific

RULE = "Never edit a migration that exists."
REQUEST = "Write the tests for partial refunds first, then the code."
TODO = "credit note shows tax by rate"


def conversation() -> Transcript:
    talk = Transcript().prompt(f"Hello.\n{RULE}").answer("Understood.").prompt(REQUEST)
    todos: list[JSON] = [{"content": TODO, "status": "pending"}]
    return talk.use("TodoWrite", "The list was updated.", todos=todos).answer("Begun.")


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    return conversation().write(tmp_path / "session.jsonl")


def lost(transcript: Path, source: str = "compact") -> str:
    said = ask("SessionStart", transcript, source=source)
    return str(specific(said)["additionalContext"]) if said else ""


def summary(transcript: Path, text: str, agent_type: str = "", agent_file: str = "/none") -> str:
    return ask(
        "SubagentStop",
        transcript,
        agent_type=agent_type,
        agent_transcript_path=agent_file,
        last_assistant_message=text,
    )


def test_the_summary_is_told_what_it_must_not_lose(transcript: Path) -> None:
    said = ask("PreCompact", transcript, trigger="manual", custom_instructions="keep it short")

    assert f"(constraint) [11111111] {RULE}" in said
    assert f"(last request) [11111111] {REQUEST}" in said
    assert "(todo) credit note shows tax by rate (pending)" in said
    assert not said.startswith("{")  # a host would take it for JSON


def test_it_is_bounded(tmp_path: Path) -> None:
    talk = Transcript()
    for n in range(300):
        talk.prompt(f"Never touch file number {n} without asking me about it first.").answer("ok")

    assert len(ask("PreCompact", talk.write(tmp_path / "s.jsonl"))) < 7_000


def test_secrets_do_not_reach_the_summary(tmp_path: Path) -> None:
    key = "AKIA" + "Q7XWZP3M5N8R2T4V"
    path = Transcript().prompt(f"Always use the key {key} for uploads.").answer("ok").write(tmp_path / "s.jsonl")

    said = ask("PreCompact", path)
    assert "Always use the key" in said
    assert key not in said


def test_of_nothing_nothing_is_kept(tmp_path: Path) -> None:
    empty = Transcript().write(tmp_path / "s.jsonl")

    assert ask("PreCompact", empty) == ""
    assert lost(empty) == ""
    assert lost(empty, "resume") == ""


def test_what_the_summary_does_not_say_comes_back(transcript: Path) -> None:
    assert summary(transcript, f"The user said: {RULE}") == ""

    said = lost(transcript)

    assert RULE not in said
    assert REQUEST in said
    assert "credit note shows tax by rate" in said


def test_of_a_summary_that_says_all_nothing_comes_back(transcript: Path) -> None:
    summary(transcript, f"{RULE}\n{REQUEST}\ncredit note shows tax by rate (pending)")

    assert lost(transcript) == ""
    assert not transcript.with_suffix("").exists()  # the note and its folder are gone


def test_without_the_summary_all_of_it_comes_back(transcript: Path) -> None:
    assert RULE in lost(transcript)


def test_the_summary_is_kept_once_without_secrets_and_for_its_owner_alone(transcript: Path) -> None:
    key = "AKIA" + "Q7XWZP3M5N8R2T4V"
    summary(transcript, "old")
    summary(transcript, f"the key is {key}")
    note = transcript.with_suffix("") / "compaction.txt"

    assert key not in note.read_text()
    assert note.read_text().startswith("the key is ")
    assert note.stat().st_mode & 0o777 == 0o600
    lost(transcript)
    assert not note.exists()


def test_of_a_session_that_is_not_kept_no_summary_is(tmp_path: Path) -> None:
    summary(tmp_path / "session.jsonl", "All of it.")
    assert not (tmp_path / "session").exists()


def test_no_summary_is_kept_behind_a_link(transcript: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    transcript.with_suffix("").symlink_to(elsewhere)

    with pytest.raises(Damaged):
        summary(transcript, "All of it.")
    (elsewhere / "compaction.txt").write_text(f"{RULE}\n{REQUEST}\n{TODO}", encoding="utf-8")

    assert RULE in lost(transcript)
    assert [path.name for path in elsewhere.iterdir()] == ["compaction.txt"]


def test_other_files_of_the_session_stay(transcript: Path) -> None:
    summary(transcript, "text")
    (transcript.with_suffix("") / "other").write_text("x")
    lost(transcript)

    assert (transcript.with_suffix("") / "other").exists()


def test_answers_of_real_subagents_are_no_summaries(transcript: Path, tmp_path: Path) -> None:
    agent = tmp_path / "agent.jsonl"
    agent.write_text("")
    summary(transcript, "found it", agent_type="Explore")
    summary(transcript, "found it", agent_file=str(agent))
    summary(transcript, "")
    ask("SubagentStop", transcript, last_assistant_message="of an old client, which names no type")

    assert not transcript.with_suffix("").exists()


class TestResume:
    def test_what_was_lost_in_an_earlier_compaction_comes_back(self, tmp_path: Path) -> None:
        talk = conversation().boundary(f"A summary that says: {REQUEST}").prompt("Go on.").answer("I go on.")
        said = lost(talk.write(tmp_path / "s.jsonl"), "resume")

        assert RULE in said
        assert REQUEST not in said

    def test_what_stands_anywhere_in_the_context_is_not_lost(self, tmp_path: Path) -> None:
        talk = conversation().boundary(f"{RULE} {REQUEST}").attachment("hook_additional_context", TODO)
        path = talk.prompt("Go on.").answer("I go on.").write(tmp_path / "s.jsonl")

        assert lost(path, "resume") == ""

    def test_without_a_compaction_nothing_was_lost(self, transcript: Path) -> None:
        assert lost(transcript, "resume") == ""

    def test_other_starts_are_nobodys_business(self, transcript: Path) -> None:
        assert lost(transcript, "startup") == ""

    def test_of_a_huge_transcript_the_front_is_not_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = conversation().boundary("nothing").prompt("Go on.").answer("ok").write(tmp_path / "s.jsonl")
        assert path.stat().st_size < MOST_BYTES
        monkeypatch.setattr("core.service.hooks.views.MOST_BYTES", 100)

        assert lost(path, "resume") == ""

    def test_a_person_hears_of_a_cold_cache_and_what_it_costs(self, transcript: Path) -> None:
        cold: dict[str, JSON] = {
            "source": "resume",
            "context_tokens": 178_583,
            "seconds_since_last_response": 7_200,
            "prompt_cache_likely_expired": True,
            "estimated_cache_write_usd": 1.1161,
        }

        assert msgspec.json.decode(ask("SessionStart", transcript, **cold)) == {
            "systemMessage": "The cache of this session is cold (last answer 2.0 hours ago): the next request writes "
            "179k tokens anew, about $1.12. A shorter session costs less: foldmark compact s"
        }
        assert "30 days ago" in ask("SessionStart", transcript, **{**cold, "seconds_since_last_response": 30 * 86_400})
        assert "tokens anew. A shorter" in ask(
            "SessionStart", transcript, **{**cold, "estimated_cache_write_usd": None}
        )
        assert ask("SessionStart", transcript, **{**cold, "prompt_cache_likely_expired": False}) == ""
        assert ask("SessionStart", transcript, **{**cold, "context_tokens": None}) == ""
        assert ask("SessionStart", transcript, **{**cold, "context_tokens": COLD_TOKENS - 1}) == ""
        assert "cache" not in ask("SessionStart", transcript, **{**cold, "source": "compact"})


def test_events_of_others_are_not_answered() -> None:
    assert answer("UserPromptSubmit", b"{}", lambda: USUAL) == ""
    assert answer("", b"", lambda: USUAL) == ""


@pytest.mark.parametrize("event", ["PreCompact", "SessionStart"])
def test_what_cannot_be_read_is_raised_for_the_shell_to_keep(event: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        ask(event, tmp_path / "none.jsonl", source="resume")
    with pytest.raises(msgspec.DecodeError):
        answer(event, b"[]", lambda: USUAL)
