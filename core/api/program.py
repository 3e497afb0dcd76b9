"""The `claude` program as an endpoint: for subscribers, who have no key; it answers one text, without tools.

The program runs in an empty folder of its own, with none of the user's hooks (Foldmark may be one of them) and
servers, and keeps no session where its version knows how not to.  Tried with 1.0.128, 2.0.76, 2.1.197 and 2.1.332.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from core.api.endpoint import Reply
from core.api.failures import classify
from core.api.patience import Attempts, Patience
from core.environment import small
from core.errors import ApiError
from core.model import JSON, UNDECODABLE, Usage, mapping, mappings, string, text_block
from core.transcript.formats.messages import usage_of

_ALWAYS = ("-p", "--output-format", "json", "--strict-mcp-config", "--setting-sources", "user")
_NO_HOOKS = ("--settings", '{"disableAllHooks":true}')
_NEW = ("--tools", "", "--no-session-persistence")
_OLD = ("--disallowedTools", "Bash,Edit,Write,Read,Glob,Grep,WebFetch,WebSearch,Task,NotebookEdit,TodoWrite")
"""Of versions that do not know how to have no tools."""
_KEPT = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
         "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "IS_SANDBOX",
         "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")  # fmt: skip
_KEPT_PREFIXES = ("ANTHROPIC_", "AWS_", "GOOGLE_", "CLOUD_ML_", "VERTEX_", "AZURE_")
_QUIET = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
_SLICE_S = 0.5
"""How long a cancelled program goes on at most."""
_SAID_CHARS = 500


def small_environment(env: Mapping[str, str]) -> dict[str, str]:
    """What the program needs of an environment: who it is, where it lives, how to sign in.

    Variables of a session that Foldmark itself was started in are not among it: the program refuses to run in one.
    """
    return {**small(env, _KEPT, _KEPT_PREFIXES), **_QUIET}


@dataclass(frozen=True, slots=True)
class Program:
    """The program to run, and the environment to run it in."""

    path: str
    env: Mapping[str, str]


class ClaudeProgram:
    """An endpoint that takes bodies of one text, with a system prompt; it does not stream.

    `clock`, `sleep`, `patience` and `cancelled` are as for `AnthropicEndpoint`.
    """

    def __init__(
        self,
        program: Program,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        patience: Patience | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self._program = program
        self._clock, self._sleep, self._cancelled = clock, sleep, cancelled
        self._patience = patience or Patience()

    def send(self, body: Mapping[str, JSON], on_text: Callable[[str], None] | None = None) -> Reply:
        """The answer of the program; `on_text` gets it in one piece.

        Raises `ApiError`, also for a body that the program cannot be given.
        """
        messages = mappings(body.get("messages"))
        prompt = messages[0].get("content") if len(messages) == 1 else None
        if not isinstance(prompt, str):
            raise ApiError("request", "the claude program takes one text, and no conversation")
        model, system = string(body.get("model")), string(body.get("system"))
        attempts = Attempts(self._patience, self._clock, self._sleep, self._cancelled)
        reply = attempts.run(lambda: self._asked(model, system, prompt, attempts))
        if on_text is not None:
            on_text(reply.text)
        return reply

    def count(self, body: Mapping[str, JSON]) -> int:
        """Raises `ApiError`: the program does not count."""
        raise ApiError("request", "the claude program does not count tokens")

    def _asked(self, model: str, system: str, prompt: str, attempts: Attempts) -> Reply:
        common = [*_ALWAYS, *_NO_HOOKS, *(("--model", model) if model else ())]
        done = self._run([*common, *_NEW, "--system-prompt", system], prompt, attempts)
        if "unknown option" in done.stderr:
            done = self._run([*common, *_OLD], f"{system}\n\n{prompt}", attempts)
        return _reply(done)

    def _run(self, args: Sequence[str], prompt: str, attempts: Attempts) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory(prefix="foldmark-") as folder:
            try:
                process = subprocess.Popen(
                    [self._program.path, *args],
                    cwd=folder,
                    env=dict(self._program.env),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    encoding="utf-8",
                    errors="replace",
                    start_new_session=True,
                )
            except OSError as error:
                raise ApiError(
                    "auth", f"cannot start {self._program.path}: {error.strerror}", "install Claude Code, or name it"
                ) from None
            with process:
                return _waited(process, prompt, attempts)


def _waited(process: subprocess.Popen[str], prompt: str, attempts: Attempts) -> subprocess.CompletedProcess[str]:
    given: str | None = prompt
    try:
        while True:
            try:
                out, err = process.communicate(given, timeout=_SLICE_S)
            except subprocess.TimeoutExpired:
                given = None
                attempts.check()
            else:
                return subprocess.CompletedProcess(process.args, process.returncode, out, err)
    except BaseException:  # also Ctrl-C: nothing that was started here goes on
        _end(process)
        raise


def _end(process: subprocess.Popen[str]) -> None:
    """Ends the program with all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _reply(done: subprocess.CompletedProcess[str]) -> Reply:
    result = _result(done.stdout)
    text = string(result.get("result"))
    if not result:
        said = " ".join((done.stderr or done.stdout).split())[-_SAID_CHARS:]
        raise classify(None, "", f"the claude program ended with {done.returncode}: {said or 'it said nothing'}")
    if result.get("is_error") is True or string(result.get("subtype")) not in ("", "success"):
        status = result.get("api_error_status")
        if "/login" in text or "Invalid API key" in text:
            raise ApiError("auth", f"the claude program is not signed in: {text}", "run claude, and /login")
        raise classify(status if isinstance(status, int) else None, "", text or string(result.get("subtype")))
    models = mapping(result.get("modelUsage"))
    return Reply(
        (text_block(text),),
        string(result.get("stop_reason")) or "end_turn",
        usage_of(mapping(result.get("usage"))) or Usage(),
        next(iter(models), ""),
        string(result.get("session_id")),
        {"usage": {key: value for key, value in mapping(result.get("usage")).items() if key != "iterations"}},
    )


def _result(out: str) -> dict[str, JSON]:
    """The result that the program printed: an object, or the last of a list of events."""
    try:
        value: JSON = msgspec.json.decode(out)
    except UNDECODABLE:
        return {}
    if isinstance(value, list):
        value = next((v for v in reversed(value) if isinstance(v, dict) and v.get("type") == "result"), None)
    return mapping(value)
