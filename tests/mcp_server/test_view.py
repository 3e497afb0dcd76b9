"""The view of a context: what it is made of, and what it does in a browser."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from core.report.words import KINDS, PARTS, STATES
from core.testing import SESSION_ID
from mcp_server.app import VIEW_URI, page
from tests.mcp_server.desk import Desk

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
CSP = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'none'"

HOST = """<!doctype html><meta charset="utf-8"><pre id="log"></pre>
<iframe id="view" sandbox="allow-scripts" style="width:WIDTHpx;height:900px;border:0" srcdoc="PAGE"></iframe>
<script>
const answers = ANSWERS, view = document.getElementById("view"), log = [];
const send = (m) => view.contentWindow.postMessage({ jsonrpc: "2.0", ...m }, "*");
addEventListener("message", ({ data: m }) => {
  if (m.method === "ui/initialize") {
    send({ id: m.id, result: { protocolVersion: "2026-01-26", hostInfo: { name: "test", version: "1" },
      hostCapabilities: { serverTools: {}, updateModelContext: {} },
      hostContext: { theme: "THEME", styles: { variables: {} } } } });
  } else if (m.method === "ui/notifications/initialized") {
    send({ method: "ui/notifications/tool-input", params: { arguments: {} } });
    send({ method: "ui/notifications/tool-result", params: { content: [], structuredContent: answers.report } });
    send({ id: "ask", method: "what/ever" });
  } else if (m.method === "tools/call") {
    log.push(m.params);
    const found = answers[m.params.name + (m.params.arguments.dry_run ? " dry" : "")] || answers[m.params.name];
    send({ id: m.id, result: found });
  } else if (m.id === "ask") { log.push(m.error);
  } else if (m.method === "view/looks") { log.push(m.params);
  } else if (m.id !== undefined) { send({ id: m.id, result: {} }); }
  document.getElementById("log").textContent = JSON.stringify(log);
});
</script>"""


def answer(text: str, **structured: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "structuredContent": structured}


async def report_of(desk: Desk) -> dict[str, Any]:
    async with desk.client() as client:
        found = (await client.call_tool("context_status", {"session": SESSION_ID})).structured_content
    assert isinstance(found, dict)
    return {**found, "session": {**found["session"], "title": "<b>Fix</b> & <script>alert(1)</script>"}}


def in_browser(tmp_path: Path, answers: dict[str, Any], driver: str, theme: str = "light", width: int = 700) -> Any:
    """What the host heard, with the page in a frame as hosts put it there; `driver` runs in the page."""
    policy = f'<meta http-equiv="Content-Security-Policy" content="{CSP}">'
    framed = page().replace("<head>", f"<head>{policy}", 1) + f"<script>{driver}</script>"
    host = HOST.replace("PAGE", html.escape(framed)).replace("ANSWERS", json.dumps(answers).replace("</", "<\\/"))
    path = tmp_path / "host.html"
    path.write_text(host.replace("THEME", theme).replace("WIDTH", str(width)), encoding="utf-8")
    common = [
        str(BROWSER),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-features=IsolateSandboxedIframes",
        f"--user-data-dir={tmp_path / 'browser'}",
    ]
    common += ["--virtual-time-budget=4000", f"--window-size={width + 40},960"]
    done = subprocess.run(
        [*common, "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=90, check=True
    )
    found = re.search(r'<pre id="log">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None
    return json.loads(html.unescape(found[1]) or "[]")


async def test_hosts_get_the_page_with_the_tool_that_fills_it(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        (content,) = (await client.read_resource(VIEW_URI)).contents
        tools = {tool.name: tool.meta or {} for tool in (await client.list_tools()).tools}
        capabilities = client.server_capabilities.model_dump()

    assert content.mime_type == "text/html;profile=mcp-app"
    assert content.text == page()  # type: ignore[union-attr]
    assert content.meta == {"ui": {"prefersBorder": True}}
    assert tools["context_status"]["ui"] == {"resourceUri": VIEW_URI}
    # The handshake era has no place for extensions; hosts go by the tool there.
    assert ("io.modelcontextprotocol/ui" in (capabilities["extensions"] or ())) == (mode == "auto")


def test_the_page_loads_nothing_and_makes_no_html_of_texts() -> None:
    text = page()

    assert re.findall(r"(?:src|href)\s*=|url\(|@import|https?:|fetch\(|XMLHttp|WebSocket|import\(", text) == []
    assert re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|localStorage", text) == []


def test_the_page_says_what_all_else_says() -> None:
    words = {"KINDS": KINDS, "PARTS": PARTS, "STATES": STATES}

    assert f"const {{ KINDS, PARTS, STATES }} = {json.dumps(words)};" in page()


def test_each_kind_has_a_colour_of_its_own() -> None:
    (hues,) = re.findall(r"const HUES = \{ (.+) \};", page())
    colours = dict(pair.split(": ") for pair in hues.split(", "))

    assert colours.keys() == KINDS.keys()
    assert len({*colours.values()}) == len(KINDS)


needs_browser = pytest.mark.skipif(BROWSER is None, reason="needs Chromium or Chrome to look at the page")

LOOK = """
setTimeout(() => {
  const buttons = [...document.querySelectorAll("td button")];
  parent.postMessage({ jsonrpc: "2.0", method: "view/looks", params: {
    title: document.getElementById("title").textContent, said: document.getElementById("said").textContent,
    parts: document.querySelectorAll("#fill span").length, rows: document.querySelectorAll("tbody tr").length,
    levels: [...document.querySelectorAll(".level")].map((l) => l.title), buttons: buttons.map((b) => b.textContent),
    scheme: getComputedStyle(document.documentElement).colorScheme, ink: getComputedStyle(document.body).color,
    wide: document.documentElement.scrollWidth <= innerWidth } }, "*");
}, 300);
"""


@needs_browser
@pytest.mark.parametrize(("theme", "width"), [("light", 700), ("dark", 360)])
async def test_it_shows_what_fills_the_window(desk: Desk, tmp_path: Path, theme: str, width: int) -> None:
    report = await report_of(desk)
    refused, looks = in_browser(tmp_path, {"report": report}, LOOK, theme, width)

    assert refused == {"code": -32601, "message": "Method not found"}
    assert looks["title"] == "<b>Fix</b> & <script>alert(1)</script>"
    assert looks["parts"] == len(report["by_kind"])
    assert looks["rows"] == len(report["largest"])
    assert looks["levels"] == ["compacts at 967k", "full at 977k"]
    assert {"Persist", "Snip"} == set(looks["buttons"])
    assert looks["scheme"] == theme
    assert (looks["ink"] == "rgb(31, 35, 40)") == (theme == "light")
    assert looks["wide"]


ACT = """
const press = (label) => [...document.querySelectorAll("button")].find((b) => b.textContent === label).click();
const look = () => parent.postMessage({ jsonrpc: "2.0", method: "view/looks", params: {
  asked: document.querySelector("#ask p").textContent, before: document.getElementById("before").title } }, "*");
const steps = [() => press("LABEL"), look, () => press("Write a new session"), look, () => press("Undo"), look];
steps.forEach((step, at) => setTimeout(step, 300 * (at + 1)));
"""


@needs_browser
@pytest.mark.parametrize(("label", "tool"), [("Persist", "compact_session"), ("Snip", "snip_range")])
async def test_an_action_is_planned_then_done_then_taken_back(
    desk: Desk, tmp_path: Path, label: str, tool: str
) -> None:
    report = await report_of(desk)
    figures = {"tokens_before": 69_200, "tokens_after": 60_000, "output_id": "new", "reason": "", "verdicts": []}
    answers = {
        "report": report,
        f"{tool} dry": answer("", **figures),
        tool: answer("done: written", **figures),
        "context_status": answer("", **report),
        "undo": answer("removed", source_path=f"/x/{SESSION_ID}.jsonl"),
    }
    heard = in_browser(tmp_path, answers, ACT.replace("LABEL", label))
    _refused, planned, first, done, status, second, undone, again, third = heard

    ident = next(part["id"] for part in report["largest"] if part["kind"] == "results")
    named = {"results": [ident]} if label == "Persist" else {"from_id": ident, "to_id": ident}
    assert planned == {"name": tool, "arguments": {"session": SESSION_ID, **named, "dry_run": True}}
    assert first["asked"].endswith("69.2k → 60.0k tokens (13.3% less)")
    assert done == {"name": tool, "arguments": {"session": SESSION_ID, **named}}
    assert status == {"name": "context_status", "arguments": {"session": "new"}}
    assert second == {"asked": "done: written", "before": "before: 69.2k"}
    assert undone == {"name": "undo", "arguments": {"session": "new", "confirmed": True}}
    assert again == {"name": "context_status", "arguments": {"session": SESSION_ID}}
    assert third["asked"] == "removed"


@needs_browser
async def test_what_cannot_be_done_is_said(desk: Desk, tmp_path: Path) -> None:
    report = await report_of(desk)
    wrong = {"isError": True, "content": [{"type": "text", "text": "no such result"}]}
    same = answer("", tokens_before=5, tokens_after=5, reason="too short", output_id="x")
    answers = {"report": report, "compact_session dry": wrong, "snip_range dry": same}
    steps = 'press("Persist"), look, () => press("Snip"), look'
    driver = re.sub(r"const steps = .*", f"const steps = [() => {steps}];", ACT)
    heard = in_browser(tmp_path, answers, driver)

    assert [h["asked"] for h in heard if h and "asked" in h] == ["no such result", "Nothing to gain: too short."]
