"""A page of HTML that needs nothing but itself: no script, no network, its style and its pictures inside.

Texts and attributes are escaped by the serializer, and what would be drawn otherwise than it is written (controls,
marks that turn the direction of text) becomes visible; so a value from a message is a value in the page.

Spec: docs/land.md#the-report
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from xml.etree.ElementTree import Element, tostring

MAX_TEXT = 200
MAX_NARROW = 4
"""Columns that a telephone shows side by side; a table of more can be pushed."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"

STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1c2430; --faint: #5b6675; --line: #d8dee6; --panel: #f5f7fa;
  --good: #1a7f5a; --bad: #c2410c; --accent: #2563a8; }
@media (prefers-color-scheme: dark) { :root { --page: #14181d; --ink: #e4e8ee; --faint: #9aa5b3; --line: #343c47;
  --panel: #1d232b; --good: #4cc38a; --bad: #ff9a62; --accent: #7ab7f5; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
p { margin: .3rem 0; } .faint { color: var(--faint); }
.figures { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1rem 0; padding: 0; list-style: none; }
.figures li { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: .6rem 1rem; }
.figures b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .4rem 0; }
table.many { min-width: 44rem; } td:first-child { min-width: 8rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid var(--line); }
th { color: var(--faint); font-weight: 600; white-space: nowrap; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code, pre { font: 13px/1.45 ui-monospace, monospace; unicode-bidi: isolate; }
pre { margin: .3rem 0; padding: .5rem .7rem; background: var(--panel); border-radius: 6px; white-space: pre-wrap;
  overflow-wrap: anywhere; }
details { border: 1px solid var(--line); border-radius: 8px; padding: .5rem .9rem; margin: .6rem 0; }
summary { cursor: pointer; } svg { display: block; } .good { fill: var(--good); } .bad { fill: var(--bad); }
.bar { fill: var(--accent); } .rest { fill: var(--line); }
"""


def visible(text: str, limit: int = MAX_TEXT, *, lines: bool = False) -> str:
    """The text, cut, with what cannot be seen as escapes; with `lines` line ends stay."""
    cut = text if len(text) <= limit else f"{text[: limit - 1]}…"
    if cut.isprintable():
        return cut
    kept = "\n" if lines else ""
    shown = (c if c.isprintable() or c in kept else c.encode("unicode_escape", "surrogatepass").decode() for c in cut)
    return "".join(shown)


def element(tag: str, *children: Element | str | int | None, **attributes: str | int) -> Element:
    """An element with texts and elements in it; `class_` and the like are spelled without the underscore."""
    made = Element(tag, {name.rstrip("_"): visible(str(value), 2000) for name, value in attributes.items()})
    for child in children:
        if isinstance(child, Element):
            made.append(child)
        elif child is not None:
            _append_text(made, f"{child:,}" if isinstance(child, int) else child)
    return made


def _append_text(parent: Element, text: str) -> None:
    if len(parent):
        parent[-1].tail = (parent[-1].tail or "") + text
    else:
        parent.text = (parent.text or "") + text


def code(text: str, limit: int = MAX_TEXT) -> Element:
    """A value of a message, as it is written."""
    return element("code", visible(text, limit))


def grid(heads: Sequence[str], rows: Iterable[Sequence[Element | str | int | None]]) -> Element:
    """A table; numbers stand at the right. A head that begins with ``#`` is one of numbers."""
    marks: list[dict[str, Any]] = [{"class_": "n"} if head.startswith("#") else {} for head in heads]
    head = element("tr", *(element("th", text.lstrip("#"), **mark) for text, mark in zip(heads, marks, strict=True)))
    body = element("tbody")
    for row in rows:
        body.append(element("tr", *(element("td", cell, **mark) for cell, mark in zip(row, marks, strict=True))))
    many: dict[str, Any] = {"class_": "many"} if len(heads) > MAX_NARROW else {}
    return element("div", element("table", element("thead", head), body, **many), class_="wide")


def bar(parts: Sequence[tuple[str, float]], title: str, width: int = 160) -> Element:
    """Shares, each with its class, side by side; what they leave of one is drawn faint."""
    svg = element("svg", element("title", title), width=width, height=12, viewBox=f"0 0 {width} 12", role="img")
    svg.append(element("rect", width=width, height=12, rx=3, class_="rest"))
    at = 0.0
    for kind, share in parts:
        if share > 0:
            length = max(share * width, 1.0)
            svg.append(
                element("rect", x=f"{min(at, width - length):.1f}", width=f"{length:.1f}", height=12, class_=kind)
            )
            at += length
    return svg


def page(title: str, *sections: Element) -> str:
    """The whole document."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", **{"http-equiv": "Content-Security-Policy", "content": POLICY}),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", visible(title)),
        element("style", STYLE),
    )
    document = element("html", head, element("body", *sections), lang="en")
    return "<!doctype html>\n" + tostring(document, encoding="unicode", method="html") + "\n"
