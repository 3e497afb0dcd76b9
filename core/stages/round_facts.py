"""What each round did, and what became of it later: shown again, given up, finished, still needed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import msgspec

from core.facts.git import is_commit
from core.facts.milestones import closes
from core.facts.names import names_in
from core.facts.outcomes import exit_code, normal
from core.facts.scan import Call, Talk, scan
from core.model import JSON, Block, Message, call_id, string, tool_results, tool_uses
from core.stages.base import Scene
from core.stages.results import tool_results_of

_LISTINGS = ("Grep", "Glob", "LS")
_TASK_LIST = "TodoWrite"
_LOADS = ("Skill", "EnterPlanMode", "ExitPlanMode", "exit_plan_mode")
"""What these brought into the context governs what the model does."""
_NAMING_CHARS = 2_000
"""Of a command: behind that stands what it writes, not what it is about."""
_TAKEN_BACK = re.compile(r"\bgit (?:checkout|restore|stash)\b([^|;&\n]{0,400})")
_STASH_READS = re.compile(r"^\s*(?:pop|apply|list|show|drop|clear)\b")
_REJECTED = re.compile(
    r"^\W*(?:no(?!\s+(?:problem|worries|need))|nope|wrong|instead|revert|undo|stop)\b", re.IGNORECASE
)
"""How a prompt begins that turns down what was done before it."""


@dataclass(slots=True)
class RoundFacts:
    """One response with its results, or what stands between two responses."""

    begin: int
    end: int
    """Behind the last message of the round itself; what the client added behind it belongs to nothing."""
    is_response: bool
    tokens: int = 0
    names: tuple[str, ...] = ()
    """Paths and symbols that it mentions, each once."""
    paths: tuple[str, ...] = ()
    """Files that its calls were about."""
    superseded_tokens: int = 0
    dead: bool = False
    closes: bool = False
    """Whether it completed a task or made a commit."""
    loads: bool = False
    """Whether it brought in what governs the work: a skill, a plan, instructions."""
    is_open: bool = False
    """Whether a call waits, an error stands, or it holds the task list as it is."""


@dataclass(slots=True)
class _Deed:
    """One call with the size of its result, in tokens, and of itself."""

    round: int
    call: Call
    ident: str
    result_tokens: int
    call_tokens: int
    key: bytes = field(init=False)
    """The same for calls that ask for the same."""
    targets: frozenset[str] = field(init=False)
    """What it was about: the file, or the files that the command names."""

    def __post_init__(self) -> None:
        command = normal(self.call.command)
        given: JSON = command or self.call.input
        self.key = self.call.name.encode() + b"\0" + msgspec.json.encode(given, order="deterministic")
        self.targets = frozenset(names_in(command[:_NAMING_CHARS])[0] if command else filter(None, [self.call.path]))

    @property
    def failed(self) -> bool:
        return exit_code(self.call) not in (0, None)

    @property
    def worked(self) -> bool:
        return exit_code(self.call) == 0

    @property
    def is_whole(self) -> bool:
        """Whether it shows or sets all that counts of its file."""
        return self.worked and bool(self.call.path) and not {"offset", "limit"} & self.call.input.keys()

    @property
    def sort(self) -> str:
        return "command" if self.call.command else "change" if self.call.changes else self.call.name


def facts_of(
    scene: Scene, messages: Sequence[Message], sizes: Sequence[int], spans: Sequence[tuple[int, int]]
) -> list[RoundFacts]:
    """The facts of the groups that lie at `spans` (begin, end), in order."""
    rounds: list[RoundFacts] = []
    deeds: list[_Deed] = []
    results = {call_id(b): b for m in messages for b in tool_results(m)}
    for begin, end in spans:
        talk = scan(messages[begin:end])
        kept = [i for i in range(begin, end) if messages[i].kind in ("response", "results")]
        one = RoundFacts(begin, kept[-1] + 1 if kept else end, messages[begin].kind == "response")
        one.tokens = sum(sizes[i] for i in kept)
        own = [*_deeds(scene, len(rounds), talk, messages[begin:end], results)]
        one.names, one.paths = _names(talk), tuple(dict.fromkeys(d.call.path for d in own if d.call.path))
        rounds.append(one)
        deeds += own
    _supersede(rounds, deeds)
    mended = _mended(deeds)
    _give_up(rounds, deeds, mended, messages)
    _close(rounds, deeds)
    _bar(rounds, deeds, mended, messages)
    return rounds


def _deeds(
    scene: Scene, at: int, talk: Talk, messages: Sequence[Message], results: dict[str, Block]
) -> Iterator[_Deed]:
    blocks = [b for m in messages if m.role == "assistant" for b in tool_uses(m)]
    for call, block in zip(talk.calls, blocks, strict=True):
        ident = call_id(block)
        result = results.get(ident)
        yield _Deed(at, call, ident, scene.block_tokens([result]) if result else 0, scene.block_tokens([block]))


def _names(talk: Talk) -> tuple[str, ...]:
    """The names but those of the arguments of its calls: every call of that tool has them."""
    arguments = {key for call in talk.calls for key in call.input}
    return tuple(name for name in talk.names.uses if name not in arguments)


def _by_round(deeds: Sequence[_Deed]) -> Iterator[list[_Deed]]:
    """The calls of each round, the newest round first."""
    found: dict[int, list[_Deed]] = {}
    for deed in deeds:
        found.setdefault(deed.round, []).append(deed)
    yield from reversed(found.values())


def _supersede(rounds: Sequence[RoundFacts], deeds: Sequence[_Deed]) -> None:
    """Counts the tokens of results that a later round shows again, or has made untrue."""
    keys: set[bytes] = set()
    whole: set[str] = set()
    opened: set[str] = set()
    has_list = False
    for own in _by_round(deeds):
        for deed in own:
            one = rounds[deed.round]
            if deed.call.name == _TASK_LIST and has_list:
                one.superseded_tokens += deed.result_tokens + deed.call_tokens
            elif deed.key in keys or deed.call.path in whole or _is_used_up(deed, opened):
                one.superseded_tokens += deed.result_tokens
        for deed in own:
            has_list |= deed.call.name == _TASK_LIST
            if deed.call.result is not None:
                keys.add(deed.key)
            if deed.is_whole and deed.call.name not in _LISTINGS:
                whole.add(deed.call.path)
                opened.update(_endings(deed.call.path))


def _is_used_up(deed: _Deed, opened: set[str]) -> bool:
    """Whether all files that a listing named were opened later."""
    if deed.call.name not in _LISTINGS:
        return False
    hits = names_in(deed.call.result or "")[0]
    return bool(hits) and all(hit.removeprefix("./") in opened for hit in hits)


def _endings(path: str) -> Iterator[str]:
    """A path, and what is left of it when folders are taken from its front."""
    yield path
    parts = path.split("/")
    yield from ("/".join(parts[i:]) for i in range(1, len(parts)))


def _give_up(
    rounds: Sequence[RoundFacts],
    deeds: Sequence[_Deed],
    mended: Sequence[_Deed | None],
    messages: Sequence[Message],
) -> None:
    """Marks what was reverted, what failed and was done otherwise, and what the person turned down."""
    olds: dict[tuple[str, JSON], list[int]] = {}
    edits: list[_Deed] = []
    for deed in deeds:
        call = deed.call
        if call.path and call.changes and deed.worked:
            edits.append(deed)
            for at in olds.pop((call.path, string(call.input.get("new_string"))), ()):
                rounds[at].dead = True
            if old := string(call.input.get("old_string")):
                olds.setdefault((call.path, old), []).append(deed.round)
        elif call.command and deed.worked:
            if is_commit(call):
                edits.clear()
            if undone := _TAKEN_BACK.search(call.command):
                edits = [*_still_there(rounds, edits, undone)]
    for deed, other in zip(deeds, mended, strict=True):
        if deed.failed and other is not None and other.key != deed.key:
            rounds[deed.round].dead = True
    turned_down = False
    for one in reversed(rounds):
        if messages[one.begin].kind == "prompt":
            texts = (str(b.get("text")) for b in messages[one.begin].content if b.get("type") == "text")
            turned_down = bool(_REJECTED.match(next(texts, "")))
        else:
            one.dead |= turned_down


def _still_there(rounds: Sequence[RoundFacts], edits: Sequence[_Deed], undone: re.Match[str]) -> Iterator[_Deed]:
    """The edits that a command did not take back; the rounds of the others are dead."""
    for deed in edits:
        if _takes_back(undone, deed.call.path):
            rounds[deed.round].dead = True
        else:
            yield deed


def _takes_back(undone: re.Match[str], path: str) -> bool:
    if "stash" in undone[0].split()[:2]:
        return not _STASH_READS.match(undone[1])
    words = undone[1].split()
    return "." in words or any(path == w or path.endswith("/" + w.removeprefix("./")) for w in words)


def _mended(deeds: Sequence[_Deed]) -> list[_Deed | None]:
    """For each call the first of a later round that worked and was the same, or of the same sort about the same."""
    first: dict[tuple[str, str | bytes], int] = {}
    out: list[_Deed | None] = [None] * len(deeds)
    for _, group in groupby(reversed([*enumerate(deeds)]), key=lambda item: item[1].round):  # newest round first
        own = [*group]
        for at, deed in own:
            later = [first[sign] for sign in _signs(deed) if sign in first]
            out[at] = deeds[min(later)] if later else None
        for at, deed in own:
            if deed.worked:
                first.update(dict.fromkeys(_signs(deed), at))
    return out


def _signs(deed: _Deed) -> Iterator[tuple[str, str | bytes]]:
    """What two calls have in common, at least one of it, when one can mend the other."""
    yield "", deed.key
    yield from ((deed.sort, target) for target in deed.targets)


def _close(rounds: Sequence[RoundFacts], deeds: Sequence[_Deed]) -> None:
    """Marks the rounds that completed a task or made a commit."""
    for deed, closed in zip(deeds, closes([d.call for d in deeds]), strict=True):
        rounds[deed.round].closes |= closed


def _bar(
    rounds: Sequence[RoundFacts],
    deeds: Sequence[_Deed],
    mended: Sequence[_Deed | None],
    messages: Sequence[Message],
) -> None:
    """Marks what is still needed."""
    instructions = {r.id for r in tool_results_of(messages) if r.is_instruction}
    lists = [d for d in deeds if d.call.name == _TASK_LIST]
    for deed, other in zip(deeds, mended, strict=True):
        one = rounds[deed.round]
        one.loads |= deed.call.name in _LOADS or deed.ident in instructions
        stands = deed.failed and other is None
        one.is_open |= deed.call.result is None or stands or deed in lists[-1:]
