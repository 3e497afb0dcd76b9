"""A report as one HTML file that needs nothing else: no script, no font, no picture from anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from string import Template

from core.report.data import Fidelity, Report, Said, Side
from core.report.words import KINDS, PLACES, SCALE, STANDINGS, change, dollars, faults, fidelity_words, part_name, share

_SAID = 40
"""How many requests and statements the page shows."""
_IDS = 400
_UUID_CHARS = 36
_TONES = {
    **dict.fromkeys(("kept", "verbatim"), "good"),
    **dict.fromkeys(("changed", "stored", "in part"), "some"),
    "gone": "bad",
    "": "quiet",
}
_COLOURS = ("system", "results", "tool_use", "text", "thinking", "summary", "prompt", "meta", "command", "attachment")
_FAULT_TONE = "gone"
_KEPT_NAMES = 0.8
"""With so large a part of the names an index does what it is there for."""


def render(report: Report) -> str:
    """The page.  Whatever comes from a transcript is escaped."""
    before, after = report.before, report.after
    title = f"{before.title or before.id}: before and after"
    sections = (
        f"<h1>{escape(before.title or before.id)}</h1>",
        f'<p class="quiet">before <code>{escape(before.id)}</code>, after <code>{escape(after.id)}</code>, '
        f"model {escape(before.model or 'unknown')}</p>",
        *(f'<p class="bad">{escape(warning)}</p>' for warning in report.warnings),
        _figures(report),
        _bars(before, after),
        _kinds(before, after),
        _places(report),
        _largest(report),
        _fidelity(report.fidelity),
        _said("What you asked for", "Request", report.requests),
        _said("What goes on to hold", "Rule, wish or value", report.constraints),
        _names(report),
        _ids(report),
    )
    template = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
    colours = "\n".join(f".k-{k} {{ background: var(--{'text-part' if k == 'text' else k}); }}" for k in _COLOURS)
    return template.substitute(
        title=escape(title),
        body="\n".join(filter(None, sections)),
        colours=f"{colours}\n.k-other {{ background: var(--other); }}",
    )


def _figures(report: Report) -> str:
    before, after = report.before, report.after
    warm, cold = (
        f"{dollars(before.next_request_usd[state])} → {dollars(after.next_request_usd[state])}"
        for state in ("warm", "cold")
    )
    gone = report.places["gone"].messages
    figures = (
        ("Tokens", f"{before.tokens:,} → {after.tokens:,}", change(before.tokens, after.tokens)),
        ("Messages", f"{before.messages:,} → {after.messages:,}", f"{gone:,} of them gone" if gone else "none gone"),
        ("Next request, warm cache", warm, "the context alone"),
        ("Next request, cold cache", cold, "the context alone"),
    )
    cells = (f"<div><dt>{name}</dt><dd>{value} <small>{note}</small></dd></div>" for name, value, note in figures)
    return f'<dl class="figures">{"".join(cells)}</dl>'


def _bars(before: Side, after: Side) -> str:
    whole = max(before.tokens, after.tokens, 1)
    lines = (
        f'<div class="line"><span>{name}</span>'
        f'<div class="bar" role="img" aria-label="{_spoken(name, side)}">{_segments(side, whole)}</div>'
        f'<span class="value">{side.tokens:,} tokens, {share(side.tokens, side.window_tokens)} of the window</span>'
        "</div>"
        for name, side in (("before", before), ("after", after))
    )
    return f'<h2>What fills the context</h2>\n{"".join(lines)}\n<p class="quiet">{SCALE}</p>'


def _segments(side: Side, whole: int) -> str:
    return "".join(
        f'<span class="k-{_colour(kind)}" style="width:{n / whole:.3%}" title="{_kind(kind)}: {n:,} tokens"></span>'
        for kind, n in side.by_kind.items()
    )


def _spoken(name: str, side: Side) -> str:
    parts = ", ".join(f"{_kind(kind)} {count:,}" for kind, count in side.by_kind.items())
    return f"{name}: {side.tokens:,} tokens: {parts}"


def _kinds(before: Side, after: Side) -> str:
    rows = []
    for kind in dict.fromkeys((*before.by_kind, *after.by_kind)):
        old, new = before.by_kind.get(kind, 0), after.by_kind.get(kind, 0)
        mark = f'<span class="mark k-{_colour(kind)}" aria-hidden="true"></span>'
        rows.append((f"{mark}{_kind(kind)}", f"{old:,}", f"{new:,}", change(old, new)))
    return _table("", ("Tokens", "Before", "After", "Change"), rows)


def _places(report: Report) -> str:
    whole = sum(place.tokens for place in report.places.values())
    rows = [
        (
            _toned(PLACES[place], place if count.messages else ""),
            f"{count.messages:,}",
            f"{count.tokens:,}",
            share(count.tokens, whole),
        )
        for place, count in report.places.items()
    ]
    note = "What was shortened, or is there on demand, can be read whole: foldmark output SESSION ID"
    return "<h2>Where it went</h2>\n" + _table(note, ("The messages of before", "Messages", "Tokens", "Share"), rows)


def _largest(report: Report) -> str:
    rows = [
        (
            _short(part.id),
            escape(part_name(part.kind, part.tool)),
            f"{part.tokens:,}",
            f"{part.tokens_after:,}",
            _toned(PLACES[part.place], part.place),
        )
        for part in report.largest
    ]
    headers = ("Id", "What", "Before", "After", "Where it is")
    return "<h2>The largest parts of before</h2>\n" + _table("", headers, rows, figures=(2, 3)) if rows else ""


def _fidelity(found: Fidelity | None) -> str:
    if found is None:
        return ""
    rows = [
        (f'<span class="said">{escape(line)}</span>', f'<span class="standing">{_toned(word, _FAULT_TONE)}</span>')
        for word, lines in faults(found)
        for line in lines
    ]
    note = ", ".join(fidelity_words(found))
    if not rows:
        return f"<h2>The summary</h2>\n<p>{note}.</p>"
    if len(rows) > _SAID:
        note += f"; {_SAID} of {len(rows)} faults are shown"
    return "<h2>The summary</h2>\n" + _table(note, ("Fault", "What it is"), rows[:_SAID], figures=())


def _said(heading: str, column: str, said: Sequence[Said]) -> str:
    if not said:
        return ""
    rows = [
        (
            f'<span class="said">{escape(s.text)}</span>',
            f'<span class="standing">{_toned(STANDINGS[s.standing], s.standing)}</span>',
        )
        for s in sorted(said, key=lambda s: s.standing == "verbatim")[:_SAID]
    ]
    whole = sum(s.standing == "verbatim" for s in said)
    note = f"{whole} of {len(said)} stand word for word in the context"
    if len(said) > _SAID:
        note += f"; {_SAID} are shown, those that do not first"
    return f"<h2>{heading}</h2>\n" + _table(note, (column, "In the context"), rows, figures=())


def _names(report: Report) -> str:
    names = report.names
    if not names.paths + names.symbols:
        return ""
    rows = [
        (what, f"{there:,}", f"{all_:,}", _coverage(there, all_))
        for what, there, all_ in (
            ("Paths", names.paths_named, names.paths),
            ("Symbols", names.symbols_named, names.symbols),
        )
    ]
    text = _table("Names in calls and prose of what left the context", ("", "Still named", "Of", "Share"), rows)
    missing = ", ".join(f"<code>{escape(name)}</code>" for name in names.missing)
    return "<h2>Names</h2>\n" + text + (f"\n<p>Not named any more: {missing}</p>" if missing else "")


def _coverage(there: int, whole: int) -> str:
    tone = "good" if there >= _KEPT_NAMES * whole else "some"
    return f'<span class="{tone}">{share(there, whole)}</span>'


def _ids(report: Report) -> str:
    out = []
    lists = (("can be read on demand", report.reachable), ("are gone", report.gone))
    for what, ids in lists:
        if ids:
            items = "".join(f"<li><code>{escape(ident)}</code></li>" for ident in ids[:_IDS])
            more = f"<p>and {len(ids) - _IDS:,} more</p>" if len(ids) > _IDS else ""
            out.append(
                f'<details><summary>{len(ids):,} ids {what}</summary><ul class="ids">{items}</ul>{more}</details>'
            )
    return "<h2>Ids</h2>\n" + "\n".join(out) if out else ""


def _table(
    caption: str, headers: Sequence[str], rows: Iterable[Sequence[str]], figures: Sequence[int] = (1, 2, 3)
) -> str:
    """A table of cells that are HTML already; those of the columns `figures` hold numbers."""

    def cell(tag: str, at: int, text: str, scope: str = "") -> str:
        style = ' class="n"' if at in figures else ""
        return f"<{tag}{scope}{style}>{text}</{tag}>"

    head = "".join(cell("th", at, text, ' scope="col"') for at, text in enumerate(headers))
    lines = (
        cell("th", 0, row[0], ' scope="row"') + "".join(cell("td", at, text) for at, text in enumerate(row[1:], 1))
        for row in rows
    )
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    said = f"<caption>{caption}</caption>" if caption else ""
    return f'<div class="wide"><table>{said}<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def _short(ident: str) -> str:
    """The beginning of an id, which is all that commands need; the whole is shown when it is pointed at."""
    return f'<code class="id" title="{escape(ident)}">{escape(ident[: 8 if len(ident) == _UUID_CHARS else 14])}</code>'


def _toned(text: str, what: str) -> str:
    return f'<span class="{_TONES[what]}">{text}</span>'


def _kind(kind: str) -> str:
    return escape(KINDS.get(kind, kind))


def _colour(kind: str) -> str:
    return kind if kind in _COLOURS else "other"
