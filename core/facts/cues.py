"""What makes a sentence worth keeping: words that mark rules, updates, tasks, decisions and findings; identifiers."""

from __future__ import annotations

import re

from core.facts.names import names_in


def _any_of(*alternatives: str) -> re.Pattern[str]:
    """One of some expressions, as whole words, in any case."""
    return re.compile(r"\b(?:" + "|".join(alternatives) + r")\b", re.IGNORECASE)


RULE = re.compile(
    _any_of(
        r"must(?:n't)?|never|always|only|don'?t|do not|does not|shall(?: not)?|should(?:n't| not)?|may not|can ?not",
        r"no longer|required?|requires|forbidden|not allowed|under no circumstances|unless|whenever|until|from now on",
        r"without (?:explicit |prior )?(?:approval|consent|asking)|make sure|ensure|avoid|keep|leave|stick to",
        r"at most|at least|no more than|exactly|instead of|rather than|important|careful",
        r"nie(?:mals)?|immer|nur|nicht|keine?|muss|müssen|soll(?:en)?|bitte|jamais|toujours|seulement|ne pas|il faut",
        r"nunca|siempre|solo|debe|mai|sempre|soltanto|deve|нельзя|всегда|никогда|только",
    ).pattern
    + "|^(?:please )?use\\b"
    + "|不要|必须|必須|禁止|只能|总是|しないで|必ず|ください",  # written without spaces: no word has an edge
    re.IGNORECASE,
)
PREFERENCE = _any_of(
    r"prefers?|preferred|preference|wants?|would rather|would like|i'?d (?:rather|like)|like (?:it|them|to)|style",
    r"please (?:use|make|keep|answer|write|avoid|be)|named? (?:with|after)|call (?:it|this|them)",
    r"(?:answer|reply|respond|write|speak|talk)(?:s|ing)?(?: to me)? in",
)
LABEL = re.compile(
    r"^(?:([A-Z][A-Z]{2,}(?:[ _-][A-Z]{2,}){0,3})"
    r"|(?i:important|note|rule|constraint|requirement|reminder|remember|fact|goal|update|decision|warning|caution)):\s"
)
"""What a person put in front of a statement to say what it is; the group is a label in capitals."""
BINDING = re.compile(r"rule|constraint|requirement|important|warning|caution", re.IGNORECASE)
"""The labels that make a rule of whatever they stand before."""
UPDATE = re.compile(
    _any_of(
        r"(?:has|have|was|were|is|are) (?:now|changed|replaced|renamed|moved|rotated|bumped|extended|postponed|raised"
        r"|lowered|reassigned)",
        r"(?:re\w{2,}ed|moved|switched|changed|migrated|bumped|raised|lowered|extended|postponed)"
        r" (?:\w+ ){0,4}(?:to|onto|by)",
        r"rotated|no longer|instead|rather|as of|effective|scratch that|correction|actually|not \w+ anymore",
        r"(?:old|previous|former|earlier) \w+|we(?:'re| are) now",
    ).pattern
    + r"|\bupdate[sd]?:|^new\b|(?<!right )(?<!from )(?<!until )(?<!for )(?<!\A)\bnow\b(?! on)",
    re.IGNORECASE,
)
SETS = _any_of("is|are|was|equals|called|named")
"""The words between a thing and its value."""
DEFERRED = _any_of(
    r"later|afterwards?|eventually|remember to|remind me|don'?t forget|to-?do|follow[- ]?up",
    r"at the (?:very )?end(?! of)|once (?:this|that|it) is",
    r"when (?:all )?(?:this|that|you(?:'re| are)) (?:is )?(?:all )?done",
)
_FINDINGS: tuple[tuple[float, re.Pattern[str]], ...] = (
    (1.0, _any_of(r"decid\w+|decision|chose|chosen|we will|going with|go with|settled on|opted|instead of|agreed")),
    (
        1.0,
        _any_of(
            r"root cause|caused by|because|turns out|found(?: that| the| out)?|discovered",
            r"the (?:real |actual |underlying )?(?:bug|issue|problem|culprit|reason|cause) (?:is|was)",
        ),
    ),
    (
        1.0,
        _any_of(
            r"tried|did(?:n't| not) (?:work|help)|does(?:n't| not) (?:work|help)|no luck|ruled out|dead end|reverted",
            r"rolled back|failed because|not possible",
        ),
    ),
    (
        1.0,
        _any_of(
            r"fixed|works? now|now works?|(?:all )?\w* ?tests? (?:now )?pass\w*|confirmed|verified|measured|resolved",
            r"implemented|completed|committed|pushed|merged|created|added|renamed|removed",
        ),
    ),
    (
        0.5,
        _any_of(
            r"failing|blocked|broken|missing|commit|branch|port|limit|version|requires?|must|depends on|note that",
            r"important|caveat|workaround",
        ),
    ),
)
"""Decisions, causes, dead ends, results; and, for half, words about the state of things."""
_CHATTER = re.compile(
    r"^(?:let me|now let me|i'?ll|i will|now i|perfect|great|good|ok(?:ay)?|excellent|sure|alright|now,? (?:let|i))\b",
    re.IGNORECASE,
)
_NEXT = _any_of(
    r"next(?: step| up|(?=,))|remaining|still (?:to|need|have)|then i(?:'ll| will)|i(?:'ll| will) now|to do|left to",
    r"now i(?:'ll| will| need)|let me|want me to|should i|shall i",
)
_IDENTIFIER = re.compile(
    r"\b(?=[\w-]{0,80}\d)(?=[\w-]{0,80}[A-Za-z])\w{1,40}(?:-\w{1,40}){1,8}\b"
    r"|\b(?=[0-9a-f]{0,40}\d)(?=[0-9a-f]{0,40}[a-f])[0-9a-f]{7,40}\b|#\d{1,6}\b|\b[A-Z]{2,10}-\d{1,6}\b"
)
_WORD = re.compile(r"[^\W\d_]{3,}")
STOP = frozenset(
    re.findall(
        r"\w+",
        """the and for that this with from are was were has have had will would should could can may must not but its
        his her our your their they them then than when what which who how why all any each every some such only also
        just into onto over under more most less very now new old use using used user please make made keep want wants
        need needs get got let about there here been being does did one out off per via""",
    )
)
"""Words that say nothing about the subject of a sentence."""


def finding_score(sentence: str) -> float:
    """2 for each kind of cue (at most 2), 1 for each path, symbol or identifier (at most 3), less for chatter."""
    cues = min(2.0, sum(worth for worth, pattern in _FINDINGS if pattern.search(sentence)))
    paths, symbols = names_in(sentence)
    named = len(set(paths)) + len(set(symbols)) + len(set(identifiers(sentence)))
    return 2 * cues + min(3, named) - (2 if _CHATTER.match(sentence) else 0)


def identifiers(text: str) -> list[str]:
    """Tokens that name one thing: hashes, numbered and hyphenated codes, issue numbers."""
    return _IDENTIFIER.findall(text)


def says_next(sentence: str) -> bool:
    """Whether a sentence says what comes next, or asks the person about it."""
    return bool(_NEXT.search(sentence)) or sentence.endswith("?")


def keys(text: str) -> frozenset[str]:
    """The content words of a text, cut to a stem of at most six letters, so that forms of one word are equal."""
    return frozenset(stem(w) for w in _WORD.findall(text.lower()) if w not in STOP)


def stem(word: str) -> str:
    """A word without its commonest endings and a leading "re" (of verbs: rebased, renamed), at most six letters."""
    for ending in ("ing", "ions", "ion", "ed", "er", "es", "ly", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    word = word.removesuffix("al") if len(word) > 5 else word
    word = word.removesuffix("e") if len(word) > 3 else word
    if word.startswith("re") and len(word) >= 5:
        word = word[2:]
    return word[:6]
