"""Sessions as hypothesis makes them: any number of turns, in every state that a client leaves a transcript in."""

from __future__ import annotations

from hypothesis import strategies as st

from core.testing import Transcript

Draw = st.DrawFn
_WORDS = st.text('abc déf漢\U0001f600\n"\\', min_size=1, max_size=40).filter(str.strip)
_SIZES = st.sampled_from((1, 20, 200, 2_000))
_TOOLS = ("Read", "Bash", "Grep")
ENDS = ("done", "prompt", "results", "call", "half")
"""Whether the last turn is over, not begun, waits for the model, or was killed in one or one of two calls."""


@st.composite
def transcripts(draw: Draw, turns: int = 5, agent_id: str = "", ends: tuple[str, ...] = ENDS) -> Transcript:
    """A session of at most `turns` turns, with thinking, parallel calls, notes, attachments, an earlier compaction."""
    made = Transcript(agent_id=agent_id)
    if draw(st.booleans()):
        made.attachment("environment", "Linux")
    for turn in range(draw(st.integers(1, turns))):
        _turn(draw, made, turn)
        if draw(st.integers(0, 9)) == 0:
            made.boundary("An earlier summary. " * draw(_SIZES))
    _end(draw, made, draw(st.sampled_from(ends)))
    if draw(st.booleans()):
        made.beside("last-prompt", lastPrompt="x", leafUuid=made.last)
    return made


def _turn(draw: Draw, made: Transcript, turn: int) -> None:
    before = draw(st.sampled_from(("", "", "note", "command", "progress", "mode")))
    if before == "note":
        made.note(f"Note {turn}: {draw(_WORDS)}")
    elif before == "command":
        made.prompt(f"<command-name>/c{turn}</command-name>").system(
            "local_command", "<local-command-stdout>out</local-command-stdout>"
        )
    elif before == "progress":
        made.system("informational", f"hook {turn}")
    elif before == "mode":
        made.beside("permission-mode", permissionMode=f"mode{turn}")
    made.prompt(f"Prompt {turn}: {_text(draw)}")
    for step in range(draw(st.integers(0, 3))):
        _step(draw, made, f"{turn}.{step}", answered=2)
    if draw(st.integers(0, 4)) == 0:
        made.attachment("queued_command", f"Queued {turn}", role="user")
    made.answer(f"Answer {turn}: {_text(draw)}", thinking=_thought(draw))


def _step(draw: Draw, made: Transcript, name: str, answered: int) -> None:
    tools = draw(st.lists(st.sampled_from(_TOOLS), min_size=1, max_size=3 if answered else 2))
    made.call(
        *tools, text=draw(st.sampled_from(("", f"Step {name}."))), thinking=_thought(draw), file_path=f"f{name}.py"
    )
    calls = made.calls[-len(tools) :]
    for call in draw(st.permutations(calls if answered == 2 else calls[:answered])):
        made.result(f"Output {call}: {_text(draw)}", call, error=draw(st.booleans()))


def _end(draw: Draw, made: Transcript, end: str) -> None:
    if end != "done":
        made.prompt(f"Last: {_text(draw)}")
    if end in ("results", "call", "half"):
        _step(draw, made, "last", answered={"results": 2, "call": 0, "half": 1}[end])


def _text(draw: Draw) -> str:
    return draw(_WORDS) * draw(_SIZES)


def _thought(draw: Draw) -> str:
    return draw(st.sampled_from(("", "", "I wonder.")))
