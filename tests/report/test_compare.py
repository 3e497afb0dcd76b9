"""What became of the messages, words and names of a context."""

from __future__ import annotations

from core.model import Block, Message
from core.report.compare import LARGEST, Comparison


def text(kind: str, said: str, *uuids: str, role: str = "user") -> Message:
    return Message(role, kind, ({"type": "text", "text": said},), uuids)  # type: ignore[arg-type]


def call(ident: str, name: str, **given: str) -> Block:
    return {"type": "tool_use", "id": ident, "name": name, "input": {**given}}


def response(*blocks: Block, uuid: str) -> Message:
    return Message("assistant", "response", blocks, (uuid,))


def result(ident: str, content: str, uuid: str) -> Message:
    return Message("user", "results", ({"type": "tool_result", "tool_use_id": ident, "content": content},), (uuid,))


THINKING: Block = {"type": "thinking", "thinking": "hm", "signature": "s"}
BEFORE = [
    text("prompt", "Always use tabs in src/a.py. " + "Then explain why that is so. " * 10, "u1"),
    response(THINKING, call("t1", "Read", file_path="src/a.py"), uuid="u2"),
    result("t1", "big " * 100, "u3"),
    response(call("t2", "Read", file_path="src/lost.py"), uuid="u4"),
    result("t2", "gone", "u5"),
    text("prompt", "Write to PASSWORD=hunter2 please", "u6"),
    response(THINKING, {"type": "text", "text": "kept"}, uuid="u7"),
]
AFTER = [
    text("summary", "Asked: Always use tabs in src/a.py. " + "Then explain why that is so. " * 8 + "…", "s"),
    result("t1", "[stored]", "u3"),
    response({"type": "text", "text": "kept"}, uuid="u7"),
]


def comparison(readable: tuple[str, ...] = ("u1", "u2", "t1", "u4", "u6")) -> Comparison:
    return Comparison(BEFORE, [70, 10, 100, 10, 5, 10, 20], AFTER, [60, 5, 15], readable)


def test_every_message_is_in_one_place() -> None:
    assert [p.place for p in comparison().pairs] == ["stored", "stored", "changed", "stored", "gone", "stored", "kept"]
    places = comparison().places()
    assert {place: (n.messages, n.tokens) for place, n in places.items()} == {
        "kept": (1, 20),
        "changed": (1, 100),
        "stored": (4, 100),
        "gone": (1, 5),
    }


def test_what_is_no_before_and_after_is_remarked_on() -> None:
    def warnings(before: list[Message], after: list[Message]) -> list[str]:
        return Comparison(before, [1] * len(before), after, [1] * len(after), ()).warnings()

    one, other, third = (text("prompt", f"Text {n}", n) for n in "123")

    assert warnings([one], [other]) == ["the two share no message: was one of them made of the other?"]
    assert warnings([one, other], [one, other]) == ["both hold the same messages"]
    assert warnings([one, other], [one]) == warnings([one], [one, third]) == warnings([], [one]) == []


def test_the_largest_parts_come_first_with_the_tool_and_what_is_left() -> None:
    lines = comparison().largest()

    assert [(p.id, p.tool, p.tokens, p.tokens_after, p.place) for p in lines[:2]] == [
        ("t1", "Read", 100, 5, "changed"),
        ("u1", "", 70, 0, "stored"),
    ]
    assert len(Comparison([text("prompt", "x", f"u{n}") for n in range(20)], [1] * 20, [], [], ()).largest()) == LARGEST


def test_ids_are_readable_or_gone() -> None:
    assert comparison().reachable() == ["u1", "u2", "t1", "u4", "u6"]
    assert comparison().gone() == ["t2"]
    without_id = Comparison([text("prompt", "x")], [1], [], [], ())
    assert (without_id.gone(), without_id.largest()[0].id) == ([""], "")


def test_requests_stand_word_for_word_or_with_their_beginning_or_not() -> None:
    requests = comparison().requests()

    assert [(s.id, s.standing) for s in requests] == [("u1", "in part"), ("u6", "stored")]
    assert requests[0].text.endswith("…")
    assert requests[1].text == "Write to PASSWORD=[REDACTED:password] please"
    gone = Comparison([text("prompt", "Fix it", "u1")], [1], [], [], ())
    assert [s.standing for s in gone.requests()] == ["gone"]


def test_a_secret_does_not_keep_a_request_from_being_recognised() -> None:
    after = [text("summary", "Asked: Write to  PASSWORD=hunter2\nplease")]

    assert Comparison(BEFORE[5:6], [1], after, [1], ()).requests()[0].standing == "verbatim"


def test_what_a_client_put_into_a_prompt_is_no_request() -> None:
    only = text("prompt", "<system-reminder>x</system-reminder>", "u1")

    assert Comparison([only], [1], [], [], ()).requests() == []


def test_constraints_are_the_statements_that_go_on_to_hold() -> None:
    assert [(s.text, s.standing) for s in comparison().constraints()] == [("Always use tabs in src/a.py.", "verbatim")]


def test_names_of_what_left_the_context_are_counted() -> None:
    names = comparison().names()

    assert (names.paths_named, names.paths) == (1, 2)
    assert names.missing[0] == "src/lost.py"


def test_names_are_found_in_calls_and_as_they_stand() -> None:
    odd = response(call("t1", "Read", file_path="src/<x>/m.py"), uuid="u1")
    after = [response(call("t9", "Edit", file_path="src/<x>/m.py"), uuid="u9")]

    names = Comparison([odd], [1], after, [1], ("u1",)).names()

    assert (names.paths_named, names.missing) == (names.paths, [])


def test_messages_without_ids_are_paired_by_what_they_say_each_once() -> None:
    same = [text("prompt", "again"), text("prompt", "again"), text("prompt", "once")]

    assert [p.place for p in Comparison(same, [1, 1, 1], [same[0]], [1], ()).pairs] == ["kept", "gone", "gone"]


def test_an_empty_message_is_not_lost() -> None:
    empty = Message("assistant", "response", (), ("u1",))

    assert Comparison([empty], [0], [], [], ()).places()["gone"].messages == 0
