"""`foldmark check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.main import run
from core.service.check import CheckResult
from core.service.check import check as checked
from core.service.session import Session
from core.testing import SESSION_ID, Transcript

Capture = pytest.CaptureFixture[str]
FOREIGN = Path(__file__).parents[2] / "data" / "foreign"


@pytest.fixture
def torn(tmp_path: Path) -> Path:
    """A session whose last record is cut."""
    path = tmp_path / f"{SESSION_ID}.jsonl"
    path.write_bytes(Transcript().prompt("One").answer("Two").data() + b'{"type":"user","uuid":"x"\n')
    return path


def text(capsys: Capture, *args: str, code: int = 0) -> str:
    assert run(["check", *args]) == code
    return capsys.readouterr().out


def test_damage_is_named_with_its_line_and_fails(torn: Path, capsys: Capture) -> None:
    first, line = text(capsys, str(torn), code=1).splitlines()

    assert first == f"{torn} “One”: 1 finding"
    assert line.startswith("  line 3: garbage-line: ")
    assert line.endswith("(repair: dropped)")


def test_a_repaired_copy_is_written_once(torn: Path, capsys: Capture) -> None:
    copy = text(capsys, str(torn), "--repair").partition("repaired copy: ")[2].strip()
    assert text(capsys, copy) == f"{copy} “repaired: One”: no damage\n"
    assert f"repaired copy, already there: {copy}\n" in text(capsys, str(torn), "--repair")
    assert run(["check", str(torn), "--repair", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], found["output"], found["already_there"]) == (False, copy, True)


def test_what_is_no_damage_is_said_and_does_not_fail(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / f"{SESSION_ID}.jsonl"
    path.write_bytes(Transcript().prompt("One").call("Bash").data().rstrip(b"\n"))

    out = text(capsys, str(path), "--repair")

    assert out.startswith(f"{path} “One”: no damage\n")
    assert "open-call: " in out
    assert "no-final-newline: " in out
    assert out.count("(no damage)") == 2
    assert "repaired copy" not in out


@pytest.mark.parametrize(
    ("name", "kind"), [("codex/sample.jsonl", "rolled-back"), ("opencode-export/ses_demo.json", "pruned-output")]
)
def test_what_another_client_took_out_itself_is_no_damage(name: str, kind: str, capsys: Capture) -> None:
    out = text(capsys, str(FOREIGN / name))

    assert ": no damage\n" in out
    assert f"{kind}: " in out


def test_another_clients_file_is_checked_and_not_repaired(capsys: Capture) -> None:
    path = FOREIGN / "codex" / "damaged.jsonl"
    assert f"{path}: 5 findings\n" in text(capsys, str(path), code=1)
    assert run(["check", str(path), "--repair"]) == 1
    assert "damaged.jsonl is not a Claude Code transcript" in capsys.readouterr().err


def test_many_are_a_line_each_and_one_that_cannot_be_read_is_named(torn: Path, capsys: Capture) -> None:
    other = torn.with_name("other.jsonl")
    other.write_text('{"x": 1}\n', encoding="utf-8")

    assert run(["check", str(torn.parent)]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"{other}: error: ")
    assert f"{torn} “One”: 1 finding\n" in captured.out
    assert run(["check", str(torn.parent), "--json"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line.get("ok", line.get("error", {}).get("kind")) for line in lines] == [False, "UnknownFormat"]
    assert run(["check", "--help"]) == 0
    assert "one document, or one line per session" in " ".join(capsys.readouterr().out.split())
    assert run(["check", str(other), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "UnknownFormat"


def test_a_fault_in_one_session_does_not_end_the_others(
    torn: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = torn.with_name("whole.jsonl")
    whole.write_bytes(Transcript().prompt("One").answer("Two").data())

    def check(session: Session, repaired_dir: Path | None) -> CheckResult:
        if session.file.path == torn:
            raise KeyError("lost")
        return checked(session, repaired_dir)

    monkeypatch.setattr("cli.commands.check.check", check)

    assert run(["check", str(torn.parent)]) == 1
    captured = capsys.readouterr()
    assert f"{torn}: error: a fault in Foldmark: KeyError" in captured.err
    assert f"{whole} “One”: no damage\n" in captured.out


def test_what_no_repair_mends_is_said_and_counts_as_damage(tmp_path: Path, capsys: Capture) -> None:
    made = Transcript().prompt("Go").call("Bash", command="x").prompt("Go on").answer("Done.")
    path = made.write(tmp_path / f"{SESSION_ID}.jsonl")

    assert "no repair for 1 finding" in text(capsys, str(path), "--repair", code=1)
    assert [*tmp_path.glob("*.jsonl")] == [path]

    path.write_bytes(path.read_bytes() + b"garbage\n")
    assert "repaired copy: " in (printed := text(capsys, str(path), "--repair", code=1))
    assert "no repair for 1 finding" in printed
