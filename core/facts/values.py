"""Values that a statement can set, found by their form: amounts, dates, zones, people, versions, codes.

Two statements about the same thing that set a value of the same type to something else cannot both hold.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from core.facts.cues import STOP
from core.facts.text import lowered

ValueType: TypeAlias = Literal[
    "url", "money", "date", "zone", "language", "hash", "ref", "code", "version", "person", "number"
]
Values: TypeAlias = "dict[ValueType, frozenset[str]]"

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_NUMBER = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|seventy"
    r"|eighty|ninety|hundred|thousand|million|and)"
)
_CURRENCY = r"(?:dollars?|euros?|pounds?|francs?|yen|USD|EUR|GBP|CHF|JPY)"
_LANGUAGE = (
    r"(?:English|German|French|Spanish|Italian|Portuguese|Dutch|Swedish|Norwegian|Danish|Finnish|Polish|Czech|Russian"
    r"|Ukrainian|Turkish|Greek|Hebrew|Arabic|Hindi|Chinese|Mandarin|Japanese|Korean|Vietnamese|Thai|Indonesian"
    r"|Hungarian|Romanian|Deutsch|Englisch|[Ff]rançais|[Ee]spañol|[Ii]taliano)"
)
_ZONE_AREA = r"(?:Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific)"

_FORMS: tuple[tuple[ValueType, tuple[str, ...]], ...] = (
    (
        "url",
        (
            r"https?://[^\s\"'<>)\]}`]{3,200}",
            r"\b[a-z0-9-]{1,40}(?:\.[a-z0-9-]{1,40}){0,4}\.(?:internal|local|com|org|net|io|dev)\b",
        ),
    ),
    (
        "money",
        (
            r"[$€£¥]\s?\d[\d,.]{0,20}[kKmM]?(?<![,.])",
            rf"\b(?i:\d[\d,.]{{0,20}}|{_NUMBER}(?:[ -]{_NUMBER}){{0,8}})\s(?i:{_CURRENCY})\b",
        ),
    ),
    (
        "date",
        (
            r"\b\d{4}-\d\d-\d\d\b",
            rf"\b{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?\b",
            rf"\b\d{{1,2}}\.? {_MONTH}\b",
            r"\b\d{1,2}[./]\d{1,2}[./]\d{4}\b",
        ),
    ),
    (
        "zone",
        (
            r"\b(?:UTC|GMT|CES?T|[PMCE][SD]?T)(?:[+-]\d{1,2})?\b",
            r"\b(?:Pacific|Mountain|Central|Eastern) (?:Standard |Daylight )?[Tt]ime\b",
            rf"\b{_ZONE_AREA}/[A-Z][A-Za-z_]{{2,30}}\b",
        ),
    ),
    ("language", (rf"\b{_LANGUAGE}\b",)),
    ("hash", (r"\b(?=[0-9a-f]{0,40}\d)(?=[0-9a-f]{0,40}[a-f])[0-9a-f]{7,40}\b",)),
    ("ref", (r"(?<![\w./~-])[a-z][\w-]{1,30}/[A-Za-z][\w.-]{1,60}(?![\w/])",)),
    ("code", (r"\b(?=[\w-]{0,80}[A-Za-z])(?=[\w-]{0,80}\d)[A-Za-z0-9]{1,24}(?:[-_][A-Za-z0-9]{1,24}){1,5}\b",)),
    ("version", (r"\bv?\d{1,4}\.\d{1,4}(?:\.\d{1,6})?\b",)),
    ("person", (r"(?<![\w-])[A-Z][a-z]{1,20} [A-Z][a-z]{1,20}\b",)),
    ("number", (r"(?<![\w.,-])\d{1,9}\b(?![.,-]\d)",)),
)
_PATTERNS = tuple((kind, re.compile("|".join(forms))) for kind, forms in _FORMS)


def values_in(text: str) -> tuple[Values, str]:
    """The values of a statement by type, lower-cased, and the statement without them."""
    found: Values = {}
    rest = text
    for kind, pattern in _PATTERNS:
        hits = frozenset(lowered(m.group()) for m in pattern.finditer(rest))
        if kind == "person":
            # A sentence begins with a capital: "Only Python" is nobody.
            hits = frozenset(hit for hit in hits if hit.split()[0] not in STOP)
        if hits:
            found[kind] = hits
            rest = pattern.sub(" ", rest)
    return found, rest
