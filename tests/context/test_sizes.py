"""The parts of a context with their tokens."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings

from core.context.dialect import NEWEST
from core.context.sizes import (
    count_messages,
    measured,
    measured_conversation,
    overhead_tokens,
    parts_of_chain,
    parts_of_conversation,
    parts_of_messages,
    projected_uuids,
    recorded_overhead_tokens,
    stale_uuids,
)
from core.context.tokens.ledger import DEFAULT_OVERHEAD_TOKENS
from core.context.tokens.models import lookup
from core.context.view import messages_of
from core.model import JSON, Block, Message
from core.testing import Transcript
from core.transcript.chain import load
from core.transcript.formats import read
from core.transcript.formats.conversation import Conversation
from tests.disk import compacted, on_disk
from tests.sessions import transcripts

MODEL = lookup("claude-opus-4-8")
DATA = Path(__file__).parents[1] / "data"


@settings(max_examples=40)
@given(made=transcripts())
def test_rows_and_messages_make_the_same_total(made: Transcript) -> None:
    with on_disk(made) as path:
        log, chain = load(path)
        with log:
            rows, messages = parts_of_chain(log, chain, NEWEST), messages_of(log, chain)
            by_row, by_message = measured(rows, MODEL), measured(parts_of_messages(messages, stale_uuids(chain)), MODEL)

    assert count_messages(rows) == len(messages)
    assert by_row.total_tokens == by_message.total_tokens
    assert by_row.overhead_tokens == by_message.overhead_tokens
    assert sum(by_row.item_tokens) + by_row.overhead_tokens == by_row.total_tokens


def test_each_part_says_what_it_is(tmp_path: Path) -> None:
    made = Transcript().prompt("Earlier").answer("Yes").boundary("So far.").note("Mind this").prompt("Look")
    made.use("Read", "text", file_path="a.py").system("informational", "not sent").attachment("date", "Monday")
    made.system("local_command", "<local-command-stdout>x</local-command-stdout>").answer("Done")
    made.respond({"type": "text", "text": "API Error"}).rows[-1]["isApiErrorMessage"] = True
    log, chain = load(made.write(tmp_path / "a.jsonl"))
    with log:
        parts = parts_of_chain(log, chain, NEWEST)

    kinds = ["summary", "meta", "prompt", "response", "results", "attachment", "command", "response"]
    assert [part.kind for part in parts] == kinds
    assert [part.uuid for part in parts] == [e.uuid for e in chain.entries if e.subtype != "informational"][:-1]


def test_usage_of_rows_that_a_boundary_kept_in_place_does_not_count(tmp_path: Path) -> None:
    made = Transcript().prompt("Look " * 1_000).answer("Large context")
    kept = str(made.last)
    made.boundary("So far.", kept=[kept]).prompt("Go on")
    log, chain = load(made.write(tmp_path / "a.jsonl"))
    with log:
        assert kept in stale_uuids(chain)
        assert measured(parts_of_chain(log, chain, NEWEST), MODEL).source == "estimate"
        assert measured(parts_of_messages(messages_of(log, chain), stale_uuids(chain)), MODEL).source == "estimate"
        assert measured(parts_of_messages(messages_of(log, chain)), MODEL).source == "usage"


def test_without_a_boundary_nothing_is_stale_and_the_overhead_is_the_usual_one(tmp_path: Path) -> None:
    log, chain = load(Transcript().prompt("Hello").write(tmp_path / "a.jsonl"))
    with log:
        assert stale_uuids(chain) == frozenset()
        assert overhead_tokens(log, chain) == DEFAULT_OVERHEAD_TOKENS
        size = measured(parts_of_chain(log, chain, NEWEST), MODEL, 7)
    assert (size.overhead_tokens, size.source) == (7, "estimate")


def test_the_overhead_of_before_a_compaction_is_that_of_after_it() -> None:
    made = Transcript().prompt("Look " * 2_000).answer("Found it.")
    with on_disk(made) as path:
        result = compacted(path)
        log, chain = load(Path(result.output))
        with log:
            # nothing is kept, so no usage says how much is sent beside the messages
            assert abs(overhead_tokens(log, chain) - 20_000) < 100


def test_a_note_that_is_none_is_passed_over(tmp_path: Path) -> None:
    notes: tuple[JSON, ...] = ("x", {}, {"leafUuid": "", "keepTokens": 0, "overheadTokens": -1}, None)
    for note in notes:
        made = Transcript().boundary("So far.").prompt("Go")
        made.rows[0]["foldmark"] = note
        log, chain = load(made.write(tmp_path / "a.jsonl"))
        with log:
            assert overhead_tokens(log, chain) == DEFAULT_OVERHEAD_TOKENS


def test_beside_the_messages_of_another_client_is_sent_what_its_file_holds() -> None:
    prompt = Conversation("codex", system="You are a helper. " * 100)
    tools: tuple[Block, ...] = ({"name": "Read", "input_schema": {}},)

    assert recorded_overhead_tokens(Conversation("codex"), MODEL) == 0
    assert 200 < recorded_overhead_tokens(prompt, MODEL) < 1_000
    assert recorded_overhead_tokens(replace(prompt, tools=tools), MODEL) > recorded_overhead_tokens(prompt, MODEL)


def test_a_context_of_another_client_is_no_smaller_than_it_counted() -> None:
    said = Message("user", "prompt", ({"type": "text", "text": "Look " * 100},), ("m1",))
    conversation = Conversation("codex", messages=(said,), active=(said,), context_tokens=9_000)
    parts = parts_of_conversation(conversation)
    size = measured_conversation(parts, conversation, MODEL)

    assert (size.total_tokens, size.source) == (9_000, "estimate")
    assert size.item_tokens == measured(parts, MODEL).item_tokens
    assert measured_conversation(parts, replace(conversation, context_tokens=5), MODEL).overhead_tokens == 0
    assert measured_conversation([], conversation, MODEL).total_tokens == 0


def test_a_document_that_foldmark_wrote_has_the_size_that_it_was_written_with() -> None:
    said = Message("user", "prompt", ({"type": "text", "text": "Look " * 1_000},), ("m1",))
    conversation = Conversation("messages", messages=(said,), active=(said,), system="You are a helper. " * 20)
    parts = parts_of_conversation(conversation)
    system = recorded_overhead_tokens(conversation, MODEL)

    for total, overhead in ((9_000, 9_000 - measured(parts, MODEL, 0).total_tokens), (500, system), (50, 50)):
        size = measured_conversation(parts, conversation, MODEL, total)
        assert (size.total_tokens, size.overhead_tokens) == (total, overhead)
        assert sum(size.item_tokens) == total - overhead


def test_usage_of_before_a_summary_of_another_client_does_not_count() -> None:
    conversation = read(DATA / "foreign" / "opencode-export" / "ses_demo.json")
    size = measured(parts_of_conversation(conversation), MODEL)
    tokens = dict(zip((m.uuid for m in conversation.active), size.item_tokens, strict=True))

    assert len(tokens) == 8
    assert all(tokens.values())


def test_what_foldmark_wrote_is_estimated_until_the_client_went_on() -> None:
    made = Transcript().prompt("Look " * 2_000).answer("Found it.").prompt("More").use("Read", "x = 1\n" * 400)
    with on_disk(made.answer("Done")) as path:
        result = compacted(path, keep_tokens=1_500)
        log, chain = load(Path(result.output))
        with log:
            messages = messages_of(log, chain)
            marked = parts_of_messages(messages, stale_uuids(chain), projected_uuids(chain))
            by_row, by_message = measured(parts_of_chain(log, chain, NEWEST), MODEL), measured(marked, MODEL)

    assert any(m.usage for m in messages)
    assert (by_row.source, by_message.source) == ("estimate", "estimate")
    assert by_row.total_tokens == by_message.total_tokens == result.tokens_after
