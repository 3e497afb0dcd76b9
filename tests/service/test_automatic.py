"""What a session's reader is told about compactions that do not help."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.main import run
from core.service.automatic import warnings_of
from core.service.context import context_report
from core.service.session import opened
from core.testing import Transcript
from core.transcript.projects import session_file

CASES = Path(__file__).parent.parent / "data" / "cases"
ATTACHMENT = "the nested_memory attachment (/srv/app/.claude/rules/big.md)"


def test_the_report_of_a_context_warns_of_thrash_and_names_what_fills_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = CASES / "thrash-1.jsonl"
    with opened(session_file(path)) as session:
        report = context_report(session)

    assert len(report.warnings) == 1
    assert ATTACHMENT in report.warnings[0]
    assert run(["context", str(path)]) == 0
    assert f"warning: {report.warnings[0]}" in capsys.readouterr().out


def test_a_session_in_order_gets_no_warning(tmp_path: Path) -> None:
    with opened(session_file(Transcript().prompt("Hi.").answer("Hello.").write(tmp_path / "s.jsonl"))) as session:
        assert context_report(session).warnings == []


def test_another_clients_session_gets_none(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text('{"messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]}')
    with opened(session_file(path)) as session:
        assert warnings_of(session) == ()


def test_of_a_large_file_the_compactions_before_the_last_one_are_looked_for(tmp_path: Path) -> None:
    made = Transcript().prompt("A long beginning.").use("Read", "x" * (6 << 20), file_path="big.py").answer("Read.")
    for number in range(3):
        made.boundary(f"Summary {number}.").prompt(f"On {number}.").answer("Yes.")
    made.boundary("The last.").prompt("And?").answer("So.")
    with opened(session_file(made.write(tmp_path / "s.jsonl"))) as session:
        assert session.claude is not None
        assert not session.claude[0].whole
        assert "full 4 times" in warnings_of(session)[0]
