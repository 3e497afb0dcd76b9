"""The server, started as a host starts it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from core.errors import NoServer
from core.hosts.base import Launch
from core.hosts.probe import probe

ROOT = Path(__file__).parents[2]


def launch(code: str) -> Launch:
    return Launch(sys.executable, ("-c", code))


def test_the_server_names_its_tools() -> None:
    names = probe(Launch(sys.executable, (str(ROOT / "foldmark.py"), "serve")), os.environ)

    assert {"compact_session", "snip_range", "read_persisted_output", "session_memory_update"} <= {*names}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise SystemExit('no such module')", "no such module"),
        ("import sys; sys.stdin.read(40); print('hello'); print('[]'); print('{}')", "did not answer"),
        ("import sys; sys.stdin.close(); print('{\"id\": 1}')", "did not answer"),
    ],
)
def test_a_server_that_does_not_answer_says_why(code: str, said: str) -> None:
    with pytest.raises(NoServer, match=said):
        probe(launch(code), os.environ)


def test_one_that_hangs_is_ended() -> None:
    with pytest.raises(NoServer, match="did not answer"):
        probe(launch("import time; time.sleep(60)"), os.environ, timeout_s=0.5)


def test_one_that_is_not_there_is_named() -> None:
    with pytest.raises(NoServer, match="/nowhere/python"):
        probe(Launch("/nowhere/python", ()), os.environ)


@pytest.mark.parametrize("result", ["{}", "[]", '{"tools": 1}', '{"tools": [1]}'])
def test_an_answer_of_another_shape_has_no_tools(result: str) -> None:
    code = f'import sys\nfor line in sys.stdin: print(\'{{"id": 2, "result": {result}}}\', flush=True)'

    assert probe(launch(code), os.environ) == []


def test_it_gets_what_a_host_hands_down_and_what_is_written_for_it() -> None:
    code = """import os
names = [{"name": k} for k in os.environ if k in ("HOME", "KEY", "GIVEN")]
print(__import__("json").dumps({"id": 2, "result": {"tools": names}}), flush=True)"""

    names = probe(Launch(sys.executable, ("-c", code), {"GIVEN": "1"}), {"HOME": "/home/me", "KEY": "secret"})

    assert {*names} == {"HOME", "GIVEN"}
