"""Plain text work: what a person typed, sentences, cutting, and quoting that survives a round trip."""

from __future__ import annotations

import re
from collections.abc import Iterator

SCAN_CHARS = 64_000
"""At most this much of one block is looked at: a result may be one line of 12 MB."""
SUMMARY_CHARS = 4 * SCAN_CHARS
"""Of an earlier summary: no budget gives more."""

_INJECTED = (
    "system-reminder",
    "task-notification",
    "user-prompt-submit-hook",
    r"command-(?:name|message|args|contents)",
    r"local-command-(?:stdout|stderr|caveat)",
    r"bash-(?:input|stdout|stderr)",
    r"ide_(?:opened_file|selection|diagnostics)",
    r"(?:environment|session|hook)_context",
)
"""Elements that clients put into user messages."""
_INJECTED_OPEN = re.compile("<(" + "|".join(_INJECTED) + ")>")
_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\]\n]{0,40}\]")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\"')*`]{0,3}\s+(?=[A-Z0-9\"'`(*\[À-ÞА-Я㐀-鿿])|(?<=[。！？])")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|mr|mrs|dr)|\b[A-Z]|^\d{1,2})\.$", re.IGNORECASE)
_NOT_COMPARED = "'`\"“”„«»‘’´*"
_BULLET = re.compile(r"^\s*(?:[-*+•]\s+|\d{1,3}[.)]\s+|#{1,6}\s+|>\s+)")


def capped(text: str) -> str:
    """The part of a block that is looked at: its head and its end."""
    if len(text) <= SCAN_CHARS:
        return text
    return text[: SCAN_CHARS * 3 // 4] + "\n" + text[-SCAN_CHARS // 4 :]


def typed(text: str) -> str:
    """What the person typed: without the elements that a client injects into user messages."""
    out: list[str] = []
    at = 0
    closeless: set[str] = set()
    for opening in _INJECTED_OPEN.finditer(text):
        name = opening[1]
        if opening.start() < at or name in closeless:
            continue
        end = text.find(f"</{name}>", opening.end())
        if end < 0:
            closeless.add(name)
            continue
        out.append(text[at : opening.start()])
        at = end + len(name) + 3
    out.append(text[at:])
    return _INTERRUPTED.sub("", "".join(out)).strip()


def unmarked(line: str) -> str:
    """A line without the bullet, number, heading or quotation mark before it."""
    return _BULLET.sub("", line, count=1).strip()


def sentences(line: str) -> list[str]:
    """The sentences of one line, unmarked."""
    out: list[str] = []
    for part in _SENTENCE_END.split(unmarked(line)):
        if out and _ABBREVIATION.search(out[-1]):
            out[-1] += " " + part
        elif part.strip():
            out.append(part.strip())
    return out


def one_line(text: str) -> str:
    """Text on one line, runs of white space as one space."""
    return " ".join(text.split())


def cut(text: str, limit: int, tail: int = 0) -> str:
    """Text of at most `limit` characters: its head and `tail` characters of its end.

    Between them stands how many are left out, or "…" alone where there is no room for that, or where it would cost more
    than there is too much.
    """
    if len(text) <= limit:
        return text
    if limit <= 0:
        return ""
    longest = len(_left_out(len(text)))
    counts = limit > 2 * longest and len(text) - limit > longest
    room = limit - (longest if counts else 1)
    end = min(tail, limit // 3)
    head, rest = text[: room - end].rstrip(), text[len(text) - end :].strip() if end else ""
    return (head + (_left_out(len(text) - len(head) - len(rest)) if counts else "…") + rest).rstrip()


def _left_out(chars: int) -> str:
    return f" …[{chars} chars left out]… "


def beginning(text: str, limit: int) -> str:
    """How a text begins, on one line of at most `limit` characters, with "…" where it goes on."""
    line = one_line(text[: 4 * limit])
    if len(line) <= limit and not text[4 * limit :].strip():
        return line
    return line[: limit - 1].rstrip() + "…"


def quoted(text: str) -> str:
    """Text word for word: as it is when it is one line, else between fences longer than any run of tildes in it."""
    if "\n" not in text:
        return text
    fence = "~" * max(3, 1 + max((len(run) for run in re.findall("~{3,}", text)), default=0))
    return f"\n{fence}\n{text}\n{fence}"


def unquoted(text: str) -> str:
    """The text that `quoted` made this of."""
    lines = text.strip().split("\n")
    return "\n".join(lines[1:-1]) if len(lines) > 2 and lines[0].startswith("~~~") else text


def code(text: str) -> str:
    """Text as inline code on one line; backticks inside become quotes, so that nothing gets out of it."""
    return "`" + one_line(text).replace("`", "'") + "`"


def squeezed(text: str) -> str:
    """What two renderings of one text have in common: no white space, quotation marks, asterisks and capitals."""
    out = "".join(text.split())
    for char in _NOT_COMPARED:  # ten times as fast as a translation
        out = out.replace(char, "")
    return lowered(out)


def lowered(text: str) -> str:
    """The text in lower case, every character in its place, and no part of it otherwise than alone."""
    return text.replace("İ", "i").replace("Σ", "σ").lower()  # else two characters; another form at the end of a word


def shingles(text: str, size: int) -> Iterator[tuple[str, ...]]:
    """Every run of `size` words, whatever stands between them and however they are written."""
    words = re.findall(r"\w+", text.casefold())
    return zip(*(words[n:] for n in range(size)), strict=False)
