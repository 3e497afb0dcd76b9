"""Secrets out of texts: each is replaced by a mark that says what it was; what stands around it stays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from core.redact import rules
from core.redact.rules import FORMATS, OPTION, PLACED, How

MARK = "[REDACTED:{}]"


@dataclass(frozen=True, slots=True)
class Hit:
    """A secret in a text: its kind, its place (characters from `start` up to `end`), and what may be shown of it."""

    kind: str
    start: int
    end: int
    shown: str = ""
    """The part that all tokens of the kind begin with."""

    @property
    def masked(self) -> str:
        """The secret as a person may see it: its public beginning, and how long it is."""
        return f"{self.shown}… ({self.end - self.start} characters)"


def redact(text: str) -> str:
    """The text with a mark in the place of each secret.

    Labels stay (`AWS_ACCESS_KEY_ID=[REDACTED:aws-key]`); ports, hashes, ids and placeholders are no secrets.  Takes
    time in proportion to the text; redacting twice changes nothing.
    """
    return marked(text, secrets_in(text))


def redact_value(value: str, name: str) -> tuple[str, list[Hit]]:
    """As `redact`, for a text that has a name (the key of a JSON field): a password is known by that alone.

    The hits come with it, in order, with their places in the old text.
    """
    hits = secrets_in(value)
    if not hits and len(value) <= 400 and (named := _kind_of(name)) and _is_secret(named, value, "quoted"):
        hits = [Hit(named, 0, len(value))]
    return marked(value, hits), hits


def secrets_in(text: str) -> list[Hit]:
    """The secrets of a text, in order; those that overlap are one."""
    found = [*_formats(text), *_private_keys(text), *_jwts(text), *_placed(text), *_authorizations(text), *_named(text)]
    found.sort(key=lambda hit: hit.start)  # stable: of two at one place, the more exact rule has its say
    out: list[Hit] = []
    for hit in found:
        if out and hit.start < out[-1].end:
            last = out[-1]
            out[-1] = Hit(last.kind, last.start, max(last.end, hit.end), last.shown)
        else:
            out.append(hit)
    return out


def marked(text: str, hits: list[Hit]) -> str:
    """The text with a mark in the place of each of the hits."""
    if not hits:
        return text
    pieces, at = [], 0
    for hit in hits:
        pieces += [text[at : hit.start], MARK.format(hit.kind)]
        at = hit.end
    return "".join([*pieces, text[at:]])


def _formats(text: str) -> Iterator[Hit]:
    done = 0
    names: dict[str, int] = {}  # where the last text ends that has a form, but is only a name: its end has it, too
    for run in rules.RUN.finditer(text):
        for start in rules.WORD_START.finditer(text, run.start(), run.end()):
            at = start.end()
            for form in FORMATS.get(text[at : at + 3], ()) if at >= done else ():
                if at + len(form.prefix) <= names.get(form.rest, 0):
                    continue
                end, is_token = form.end(text, at)
                if is_token:
                    yield Hit(form.kind, at, end, form.prefix)
                    done = end
                    break
                names[form.rest] = end


def _at_edge(text: str, at: int) -> bool:
    """Whether a word begins here: also behind the escaped line end of a text within a text."""
    before = text[at - 1] if at else " "
    return not (before.isalnum() or before in "_-+/") or (before in "nrt" and at > 1 and text[at - 2] == "\\")


def _private_keys(text: str) -> Iterator[Hit]:
    for head in rules.PEM_HEAD.finditer(text) if "PRIVATE KEY" in text else ():
        end = _key_end(text, head.end())
        if end:
            yield Hit("private-key", head.start(), end)


def _key_end(text: str, at: int) -> int:
    """Where a private key ends whose first line ends at `at`; 0 when there is none."""
    longest = whole_lines = 0
    for _ in range(rules.PEM_STEPS):
        step = rules.PEM_STEP.match(text, at)
        if step is None:
            break
        at = step.end()
        if step["end"]:
            return at if longest >= rules.PEM_LEAST_CHARS else 0
        size = len(step["data"] or "")
        longest = max(longest, size)
        if size >= rules.PEM_LINE_CHARS:
            whole_lines = at
    return whole_lines


def _jwts(text: str) -> Iterator[Hit]:
    at = text.find("eyJ")
    while at >= 0:
        match = rules.JWT_RUN.match(text, at)
        end = match.end() if match else at + 3
        parts = text[at:end].split(".")
        if len(parts) >= 3 and parts[1].startswith("eyJ") and min(map(len, parts[:3])) >= 8 and _at_edge(text, at):
            yield Hit("jwt", at, end)
        at = text.find("eyJ", end)


def _placed(text: str) -> Iterator[Hit]:
    for kind, literal, pattern in PLACED:
        at = text.find(literal)
        while at >= 0:
            match = pattern.match(text, at)
            if match and not rules.is_placeholder(match["value"]):
                yield Hit(kind, match.start("value"), match.end("value"))
            at = text.find(literal, match.end() if match else at + len(literal))


def _authorizations(text: str) -> Iterator[Hit]:
    if "earer" not in text and "uthorization" not in text and "AUTHORIZATION" not in text:
        return
    for match in rules.AUTHORIZATION.finditer(text):
        group = "value" if match["value"] else "bare"
        if not rules.is_placeholder(match[group]) and (group == "value" or rules.is_random(match[group], 20)):
            yield Hit("authorization", match.start(group), match.end(group))


def _named(text: str) -> Iterator[Hit]:
    for stem in rules.STEM.finditer(text):
        kind, at = _word(text, stem.start())
        match = rules.VALUE.match(text, at) if kind else None
        if match is None:
            continue
        if not match["sep"].strip() and not OPTION.search(text, max(0, stem.start() - 40), stem.start()):
            continue
        group = "quoted" if match["quoted"] else "bare"
        value = match[group] if group == "quoted" else match[group].rstrip(".:!?")
        start = match.start(group)
        end = start + len(value)
        if group == "bare" and text[end : end + 1] in ("(", "["):
            continue
        if _is_secret(kind, value, _how(stem[0], match)):
            yield Hit(kind, start, end)


def _word(text: str, at: int) -> tuple[str, int]:
    """The kind of secret that a word at a place names, "" for none, and where the word ends."""
    word = rules.WORD.match(text, at)
    if word is None or (word["key"] and not rules.KEY_OF.search(text, max(0, at - 12), at)):
        return "", at
    return word.lastgroup or "", word.end()


def _how(stem: str, match: re.Match[str]) -> How:
    if stem.isupper() and match["sep"] == "=":
        return "variable"
    return "quoted" if match["quoted"] else "bare"


def _is_secret(kind: str, value: str, how: How) -> bool:
    return rules.is_password(value, how) if kind == "password" else rules.is_random(value, 16)


def _kind_of(name: str) -> str:
    """The kind of secret that a field's name ends in, "" for any other name."""
    for stem in rules.STEM.finditer(name):
        kind, end = _word(name, stem.start())
        if kind and end == len(name):
            return kind
    return ""
