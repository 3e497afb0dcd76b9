"""The server, and beside its own tools those that the conformance suite of the protocol calls by name.

Started by scripts/conformance.py: `python conformance_fixture.py PORT FOLDER`, the folder for sessions and state.
"""

from __future__ import annotations

import base64
import shutil
import struct
import sys
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import anyio
import uvicorn
from mcp.server import MCPServer, ServerRequestContext
from mcp.server.mcpserver import Context, Resolve, Sample
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    AudioContent,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)
from pydantic import BaseModel

from core.settings import Settings
from core.testing import SESSION_ID
from mcp_server.config import Config
from mcp_server.http import Address, make_app
from mcp_server.server import make_server

EXAMPLE = Path(__file__).parents[2] / "examples" / "session.jsonl"
Server = MCPServer[Config]
Ctx = Context[Config, Any]
Schema = dict[str, Any]


def png() -> str:
    """One red dot."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    dot = zlib.compress(b"\0\xff\0\0")
    return base64.b64encode(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", dot) + chunk(b"IEND", b"")
    ).decode()


def wav() -> str:
    """Eight samples of silence."""
    data = b"\x80" * 8
    kind = struct.pack("<IHHIIHH", 16, 1, 1, 8_000, 8_000, 1, 8)
    body = b"WAVEfmt " + kind + b"data" + struct.pack("<I", len(data)) + data
    return base64.b64encode(b"RIFF" + struct.pack("<I", len(body)) + body).decode()


def text(said: str) -> TextContent:
    return TextContent(type="text", text=said)


def image() -> ImageContent:
    return ImageContent(type="image", data=png(), mime_type="image/png")


def embedded(uri: str, kind: str, said: str) -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=kind, text=said))


def form(message: str, properties: Schema) -> ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(question: str) -> CreateMessageRequest:
    messages = [SamplingMessage(role="user", content=text(question))]
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=messages, max_tokens=100))


def add_contents(server: Server) -> None:
    """Every kind of content that a tool may answer with."""
    tool = _tools(server)

    @tool
    def test_simple_text() -> str:
        return "This is a simple text response for testing."

    @tool
    def test_image_content() -> ImageContent:
        return image()

    @tool
    def test_audio_content() -> AudioContent:
        return AudioContent(type="audio", data=wav(), mime_type="audio/wav")

    @tool
    def test_embedded_resource() -> EmbeddedResource:
        return embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")

    @tool
    def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
        mixed = embedded("test://mixed-content-resource", "application/json", '{"test": "data", "value": 123}')
        return [text("Multiple content types test:"), image(), mixed]

    @tool
    def test_error_handling() -> str:
        raise ToolError("This tool intentionally returns an error for testing")


def add_reports(server: Server) -> None:
    """What a server tells its client in the middle of a call."""
    tool = _tools(server)

    @tool
    async def test_tool_with_progress(ctx: Ctx) -> str:
        for done in (0, 50, 100):
            await ctx.report_progress(done, 100)
            await anyio.sleep(0.05)
        return "done"

    @tool
    async def test_tool_with_logging(ctx: Ctx) -> str:
        for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await ctx.info(said)
            await anyio.sleep(0.05)
        return "done"

    @tool
    async def test_logging_tool(ctx: Ctx) -> str:
        await ctx.info("logged")
        return "done"

    @tool
    async def test_reconnection(ctx: Ctx) -> str:
        await ctx.close_sse_stream()
        await anyio.sleep(0.1)
        return "connected again"


def add_questions(server: Server) -> None:
    """What a server of the handshake era asks its client in the middle of a call."""
    tool = _tools(server)

    class User(BaseModel):
        username: str
        email: str

    @tool
    async def test_sampling(prompt: str, ctx: Ctx) -> str:
        messages = [SamplingMessage(role="user", content=text(prompt))]
        answer = await ctx.session.create_message(messages, max_tokens=100, related_request_id=ctx.request_id)
        return f"LLM response: {getattr(answer.content, 'text', '')}"

    @tool
    async def test_elicitation(message: str, ctx: Ctx) -> str:
        answer = await ctx.elicit(message, User)
        return f"User response: action={answer.action}, content={getattr(answer, 'data', None)}"

    async def ask(ctx: Ctx, properties: Schema) -> str:
        schema = {"type": "object", "properties": properties, "required": []}
        answer = await ctx.session.elicit_form("Please fill this in", schema, related_request_id=ctx.request_id)
        return f"Elicitation completed: action={answer.action}, content={answer.content}"

    @tool
    async def test_elicitation_sep1034_defaults(ctx: Ctx) -> str:
        states = ["active", "inactive", "pending"]
        properties: Schema = {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": states, "default": "active"},
            "verified": {"type": "boolean", "default": True},
        }
        return await ask(ctx, properties)

    @tool
    async def test_elicitation_sep1330_enums(ctx: Ctx) -> str:
        plain = [f"option{n}" for n in (1, 2, 3)]
        titled = [
            {"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)
        ]
        properties: Schema = {
            "untitledSingle": {"type": "string", "enum": plain},
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled}},
        }
        return await ask(ctx, properties)


def add_rounds(server: Server) -> None:
    """What a server of 2026-07-28 asks for, by an answer that says what is missing."""
    tool = _tools(server)

    def once(name: str, key: str, request: InputRequest, said: Callable[[Any], str], state: str | None = None) -> None:
        async def ask(ctx: Ctx) -> str | InputRequiredResult:
            if answer := (ctx.input_responses or {}).get(key):
                return f"{said(answer)} {ctx.request_state or ''}".strip()
            return InputRequiredResult(input_requests={key: request}, request_state=state)

        ask.__name__ = f"test_input_required_result_{name}"
        tool(ask)

    confirm = form("Please confirm", {"ok": {"type": "boolean"}})
    name = form("What is your name?", {"name": {"type": "string"}})
    once("elicitation", "user_name", name, lambda answer: f"Hello, {answer.content['name']}!")
    once("sampling", "capital_question", sampling("What is the capital of France?"), lambda answer: answer.content.text)
    once("list_roots", "client_roots", ListRootsRequest(), lambda answer: str([str(r.uri) for r in answer.roots]))
    once("request_state", "confirm", confirm, lambda _answer: "state-ok", "first")
    once("tampered_state", "confirm", confirm, lambda _answer: "state-ok", "first")


def add_more_rounds(server: Server) -> None:
    """The same, for several questions at once and one after the other."""
    tool, name = _tools(server), form("What is your name?", {"name": {"type": "string"}})

    @tool
    async def test_input_required_result_multiple_inputs(ctx: Ctx) -> str | InputRequiredResult:
        wanted: dict[str, InputRequest] = {
            "user_name": name,
            "greeting": sampling("Generate a greeting"),
            "client_roots": ListRootsRequest(),
        }
        if wanted.keys() <= (ctx.input_responses or {}).keys():
            return "all inputs"
        return InputRequiredResult(input_requests=wanted, request_state="many")

    @tool
    async def test_input_required_result_multi_round(ctx: Ctx) -> str | InputRequiredResult:
        answers = ctx.input_responses or {}
        if "step2" in answers:
            return f"done {ctx.request_state}"
        step = 2 if "step1" in answers else 1
        asked = "Step 1: What is your name?" if step == 1 else "Step 2: What is your favorite color?"
        request = form(asked, {"name" if step == 1 else "color": {"type": "string"}})
        return InputRequiredResult(input_requests={f"step{step}": request}, request_state=f"round {step}")

    @tool
    async def test_input_required_result_capabilities(ctx: Ctx) -> str | InputRequiredResult:
        can, wanted = ctx.client_capabilities, dict[str, InputRequest]()
        if can is not None and can.sampling is not None:
            wanted["sample"] = sampling("Hello?")
        if can is not None and can.elicitation is not None:
            wanted["form"] = name
        if ctx.input_responses or not wanted:
            return "answered" if wanted else "no capabilities"
        return InputRequiredResult(input_requests=wanted)

    @tool
    async def test_streaming_elicitation(ctx: Ctx) -> str | InputRequiredResult:
        await ctx.report_progress(1, 2)
        return "answered" if ctx.input_responses else InputRequiredResult(input_requests={"user_name": name})

    tool(_needs_a_model)


def _ask_a_model() -> Sample:
    return Sample([SamplingMessage(role="user", content=text("Hello?"))], max_tokens=5)


async def _needs_a_model(answer: Annotated[CreateMessageResult, Resolve(_ask_a_model)]) -> str:
    return str(answer.content)


_needs_a_model.__name__ = "test_missing_capability"


def add_lists(server: Server) -> None:
    """Resources, and tools that say that lists changed."""
    tool = _tools(server)

    @tool
    async def test_trigger_tool_change(ctx: Ctx) -> str:
        await ctx.notify_tools_changed()
        return "told"

    @tool
    async def test_trigger_prompt_change(ctx: Ctx) -> str:
        await ctx.notify_prompts_changed()
        return "told"

    @server.resource("test://static-text", mime_type="text/plain", description="A text.")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", mime_type="image/png", description="A picture.")
    def static_binary() -> bytes:
        return base64.b64decode(png())

    @server.resource("test://watched-resource", mime_type="text/plain", description="A text to subscribe to.")
    def watched() -> str:
        return "watched"

    @server.resource("test://template/{id}/data", mime_type="application/json", description="One of many.")
    def template(id: str) -> str:  # noqa: A002 (the suite names it)
        return f'{{"id": "{id}", "templateTest": true, "data": "Data for ID: {id}"}}'


def add_prompts(server: Server) -> None:
    """Every kind of prompt."""
    prompt = server.prompt

    @prompt(description="Without arguments.")
    def test_simple_prompt() -> str:
        return "This is a simple prompt for testing."

    @prompt(description="With arguments.")
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @prompt(description="With a resource.")
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:  # noqa: N803 (the suite names it)
        shown = embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
        return [shown, "Please process the embedded resource above."]

    @prompt(description="With a picture.")
    def test_prompt_with_image() -> list[Any]:
        return [image(), "Please analyze the image above."]

    @prompt(description="Asks before it answers.")
    async def test_input_required_result_prompt(ctx: Ctx) -> Any:
        if answer := (ctx.input_responses or {}).get("user_context"):
            return f"context {getattr(answer, 'content', '')}"
        request = form("What context should the prompt use?", {"context": {"type": "string"}})
        return InputRequiredResult(input_requests={"user_context": request})


def add_handlers(server: Server) -> None:
    """Subscriptions to the suite's own resources, and the level of a log that the server does not keep."""
    low = server._lowlevel_server

    async def accept(_ctx: ServerRequestContext[Config], _params: Any) -> EmptyResult:
        return EmptyResult()

    low.add_request_handler("resources/subscribe", SubscribeRequestParams, accept)
    low.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, accept)
    low.add_request_handler("logging/setLevel", SetLevelRequestParams, accept)


def _tools(server: Server) -> Callable[[Callable[..., Any]], None]:
    def add(function: Callable[..., Any]) -> None:
        server.add_tool(function, description=f"For the suite: {function.__name__}.", structured_output=False)

    return add


def main(port: int, folder: Path) -> None:
    """Serve until ended."""
    warnings.simplefilter("ignore")  # what the suite asks for is on its way out, in part
    projects = folder / "claude" / "projects" / "-srv-app"
    projects.mkdir(parents=True)
    shutil.copy(EXAMPLE, projects / f"{SESSION_ID}.jsonl")
    server = make_server(Config(Settings(claude_dir=folder / "claude"), folder, folder / "state"))
    for add in (
        add_contents,
        add_reports,
        add_questions,
        add_rounds,
        add_more_rounds,
        add_lists,
        add_prompts,
        add_handlers,
    ):
        add(server)
    uvicorn.run(make_app(server, Address("127.0.0.1", port)), host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
