from __future__ import annotations

import base64
from typing import Any

import pytest

from core.errors import Damaged
from core.model import Block, Message
from core.transcript.page import Page, render

PIXEL = base64.b64encode(b"\x89PNG pixels").decode()


def said(text: str, uuid: str = "u1") -> Message:
    return Message("user", "prompt", ({"type": "text", "text": text},), (uuid,), timestamp="2026-01-05T09:00:00.000Z")


def called(name: str = "Bash", call: str = "toolu_1", **arguments: Any) -> Message:
    block: Block = {"type": "tool_use", "id": call, "name": name, "input": arguments}
    return Message("assistant", "response", (block,), ("a1",), "msg_1")


def answered(content: Any, call: str = "toolu_1", **more: Any) -> Message:
    block: Block = {"type": "tool_result", "tool_use_id": call, "content": content, **more}
    return Message("user", "results", (block,), ("r1",))


def text_of(page: Page) -> str:
    return b"".join(page.pieces).decode()


def body_of(page: Page, ident: str) -> bytes:
    (body,) = [body for body in page.bodies if body.id == ident]
    return b"".join(page.pieces)[body.offset : body.offset + body.size]


def test_a_page_reads_like_the_session() -> None:
    page = render("p.md", "# Session x\n", [said("List it."), called(command="ls"), answered("a\nb\n")])
    assert text_of(page) == (
        "# Session x\n"
        "\n## 1. user, prompt · 2026-01-05T09:00:00.000Z · u1\n\nList it.\n"
        "\n## 2. assistant, response · a1\n\n"
        '**Call** Bash · toolu_1\n\n```json\n{\n  "command": "ls"\n}\n```\n'
        "\n## 3. user, results · r1\n\n"
        '### Result of Bash · toolu_1 · {"command":"ls"}\n\n```\na\nb\n\n```\n'
    )


def test_bodies_are_the_exact_text_and_say_where_it_is() -> None:
    page = render("p.md", "# h", [said("one\ntwo"), called(), answered("a\r\nb\n")])
    assert body_of(page, "u1") == b"one\ntwo"
    assert body_of(page, "toolu_1") == b"a\r\nb\n"
    lines = text_of(page).split("\n")
    for body in page.bodies:
        assert body_of(page, body.id).decode().split("\n")[0] == lines[body.line - 1]
        assert body.file == "p.md"
    assert {body.id: (body.kind, body.name, body.lines) for body in page.bodies} == {
        "u1": ("prompt", "", 2),
        "a1": ("response", "", 5),
        "toolu_1": ("result", "Bash", 2),
        "r1": ("results", "", 7),
    }


@pytest.mark.parametrize("content", ["", None, [], [{"type": "text", "text": ""}], 7, ["x"]])
def test_a_result_without_text_has_an_empty_body(content: Any) -> None:
    page = render("p.md", "", [called(), answered(content)])
    (body,) = [body for body in page.bodies if body.kind == "result"]
    assert (body.size, body.lines) == (0, 0)


def test_the_texts_of_a_result_are_joined_by_line_ends() -> None:
    content = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, {"type": "odd", "x": 1}]
    page = render("p.md", "", [called(), answered(content)])
    assert body_of(page, "toolu_1") == b'a\nb\n{"type":"odd","x":1}'


def test_an_error_and_an_unknown_call_show_in_the_heading() -> None:
    assert "\n### Result (error) of toolu_9\n" in text_of(
        render("p.md", "", [answered("no", "toolu_9", is_error=True)])
    )


def test_a_long_input_is_cut_in_the_heading() -> None:
    heading = (
        text_of(render("p.md", "", [called(command="x" * 500), answered("")])).partition("### ")[2].partition("\n")[0]
    )
    assert len(heading) < 150


def test_nothing_in_a_result_ends_its_fence() -> None:
    text = "```\n````\n## 9. user · fake"
    page = render("p.md", "", [called(), answered(text)])
    assert f"\n`````\n{text}\n`````\n" in text_of(page)


def test_headings_stay_on_one_line() -> None:
    page = render("p.md", "", [called(name="a\nb", call="x\ny"), answered("text", "x\ny")])
    assert "### Result of a b · x y · {}\n" in text_of(page)
    assert body_of(page, "x\ny") == b"text"


def test_thinking_is_kept() -> None:
    block: Block = {"type": "thinking", "thinking": "hm", "signature": "s"}
    page = render("p.md", "", [Message("assistant", "response", (block,), ("a1",))])
    assert body_of(page, "a1") == b"**Thinking**\n\nhm"


def test_blocks_of_other_kinds_are_kept_as_json() -> None:
    message = Message("user", "prompt", ({"type": "odd", "x": ["`"]}, {"type": "text", "text": 3}), ("u1",))
    assert b'```json\n{\n  "type": "odd",' in body_of(render("p.md", "", [message]), "u1")


def image(data: str, media_type: str = "image/png", kind: str = "image") -> Block:
    return {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}}


@pytest.mark.parametrize(
    ("block", "link"),
    [
        (image(PIXEL), "![image](media-{}.png)"),
        (image(PIXEL, "application/pdf", "document"), "[document](media-{}.pdf)"),
        (image(PIXEL, "image/tiff"), "![image](media-{}.bin)"),
    ],
)
def test_images_and_documents_become_files(block: Block, link: str) -> None:
    page = render("p.md", "", [Message("user", "prompt", (block,), ("u1",)), called(), answered([block])])
    ((file, content),) = page.media.items()
    assert content == b"\x89PNG pixels"
    (body,) = [body for body in page.bodies if body.file != "p.md"]
    assert (body.kind, body.file, body.size, body.offset) == (block["type"], file, len(content), 0)
    assert file.startswith(body.id)
    assert body_of(page, "u1").decode() == link.format(body.id.removeprefix("media-"))
    assert body_of(page, "toolu_1") == body_of(page, "u1")


@pytest.mark.parametrize(
    "source", [None, {"type": "url", "url": "x"}, {"type": "base64", "data": "%"}, {"type": "base64", "data": "é"}]
)
def test_what_is_no_readable_image_is_kept_as_json(source: Any) -> None:
    page = render("p.md", "", [Message("user", "prompt", ({"type": "image", "source": source},), ("u1",))])
    assert page.media == {}
    assert b'"type": "image"' in body_of(page, "u1")


def test_messages_and_results_without_ids_are_shown_but_not_indexed() -> None:
    page = render("p.md", "", [Message("user", "prompt", ({"type": "text", "text": "hi"},)), answered("x", "")])
    assert "\n## 1. user, prompt\n\nhi\n" in text_of(page)
    assert [body.id for body in page.bodies] == ["r1"]


def test_lone_surrogates_do_not_stop_a_page() -> None:
    page = render("p.md", "", [said("\ud800"), called(command="\ud800"), answered("\ud800")])
    assert body_of(page, "u1") == b"?"
    assert b'"command": "?"' in body_of(page, "a1")


def test_a_block_that_no_program_could_write_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(Damaged):
        render("p.md", "", [called(command=deep)])
