"""Writes the generated documentation: docs/reference, the index of decisions, and the tables between markers.

./run docs            write the pages
./run docs --check    change nothing; list outdated pages and exit with 1
"""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any, get_overloads, is_typeddict

import msgspec

from wirebook.catalog import Catalog
from wirebook.cli.app import COMMANDS, load_command
from wirebook.definitions.explain.comparison import SlotReport
from wirebook.definitions.explain.explanation import Comparison, Explanation
from wirebook.definitions.explain.payload_faults import PayloadFault, PayloadReport
from wirebook.definitions.match.options import MatchOptions
from wirebook.definitions.match.outcome import NearMiss, Outcome
from wirebook.landing.job import LandOptions, RunOptions, land, replay
from wirebook.landing.maintenance import Upkeep, UpkeepOptions, maintain
from wirebook.landing.report.html import write_report
from wirebook.landing.runs.report import Report
from wirebook.problems import CODES, Problem, WirebookError, codes
from wirebook.problems.rules import Rule, rules
from wirebook.schema import DecodedPayload
from wirebook.spark import job as spark_job
from wirebook.spark import views
from wirebook.spark.matching import match
from wirebook.spark.session import session
from wirebook.spark.stream_endpoints import read_stream

ROOT = Path(__file__).resolve().parent.parent
DOCS, SOURCE = ROOT / "docs", ROOT / "src" / "wirebook"
NOTICE = "<!-- Written by scripts/docs.py; change the code and run it again. -->"
WIDTH = 110

# -- docs/reference/cli.md -----------------------------------------------------------------------------------------


def cli_page() -> str:
    lines = [line for name in COMMANDS for line in ((name,), *((name, inner) for inner in inner_commands(name)))]
    sections = [f"## wirebook {' '.join(line)}\n\n{fenced(help_of(*line))}" for line in lines]
    head = (
        "The `--help` of each command. Exit codes of all commands: 0 done, 1 findings, 2 the command could not run, "
        "130\ninterrupted; [in detail](../outcomes.md#exit-codes)."
    )
    return page("Command line", head, fenced(help_of()), *sections)


def inner_commands(name: str) -> list[str]:
    """Return the subcommands of a command."""
    return list(getattr(load_command(name), "commands", ()))


def help_of(*command: str) -> str:
    """Return the help of a command as printed to a pipe."""
    line = [sys.executable, "-c", "import wirebook.cli; wirebook.cli.main()", *command, "--help"]
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
    return subprocess.run(line, capture_output=True, check=True, text=True, env=environment).stdout.strip()  # noqa: S603


def fenced(text: str) -> str:
    return f"```text\n{text}\n```"


# -- docs/reference/python.md --------------------------------------------------------------------------------------

PUBLIC: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
    (
        "wirebook.catalog",
        Catalog,
        (
            "load",
            "match",
            "match_each",
            "explain",
            "explain_each",
            "build",
            "try_build",
            "transform",
            "definitions",
            "diagnostics",
            "fingerprint",
        ),
    ),
    ("wirebook.definitions.match.matcher", MatchOptions, ()),
    ("wirebook.definitions.match.selection", Outcome, ("matched", "data", "to_cloudevent", "to_dict")),
    ("wirebook.definitions.match.selection", NearMiss, ()),
    ("wirebook.definitions.explain.explanation", Explanation, ("to_dict",)),
    ("wirebook.definitions.explain.explanation", Comparison, ("wrong", "fits")),
    ("wirebook.definitions.explain.comparison", SlotReport, ()),
    ("wirebook.definitions.explain.payload_faults", PayloadReport, ("fits",)),
    ("wirebook.definitions.explain.payload_faults", PayloadFault, ()),
    ("wirebook.schema", DecodedPayload, ()),
    ("wirebook.problems", Problem, ("severity", "reason", "to_dict")),
    ("wirebook.problems", WirebookError, ()),
    ("wirebook.landing", land, ()),
    ("wirebook.landing", replay, ()),
    ("wirebook.landing.job", RunOptions, ()),
    ("wirebook.landing.job", LandOptions, ()),
    ("wirebook.landing.runs.report", Report, ("landed", "dead_lettered", "closing_line")),
    ("wirebook.landing.report.html", write_report, ()),
    ("wirebook.landing.maintenance", maintain, ()),
    ("wirebook.landing.maintenance", UpkeepOptions, ()),
    ("wirebook.landing.maintenance", Upkeep, ()),
    ("wirebook.spark", match, ()),
    ("wirebook.spark", spark_job.land, ()),
    ("wirebook.spark", spark_job.land_batch, ()),
    ("wirebook.spark", read_stream, ()),
    ("wirebook.spark", spark_job.replay, ()),
    ("wirebook.spark.job", spark_job.FrameOptions, ()),
    ("wirebook.spark.job", spark_job.StreamOptions, ()),
    ("wirebook.spark", views.table, ()),
    ("wirebook.spark.views", views.view_statements, ()),
    ("wirebook.spark.session", session, ()),
)


def python_page() -> str:
    guides = (
        "[catalogues](../catalogues.md), [building](../build.md), [landing](../land.md),\n"
        "[DataFrames](../how-to/dataframes.md), [maintenance](../how-to/maintain.md)"
    )
    head = f"The public names, from their docstrings. Guides: {guides}."
    return page("Python", head, *(entry for row in PUBLIC for entry in public_entry(*row)))


def public_entry(module: str, thing: Any, members: tuple[str, ...]) -> Iterator[str]:
    """Yield the entry of a function, or of a class with some of its members. Functions of two modules may have one
    name, so their headings have the module."""
    heading = thing.__name__ if isinstance(thing, type) else f"{module}.{thing.__name__}"
    yield f"## {heading}\n\n{signature(f'from {module} import {thing.__name__}', thing)}\n\n{prose(thing)}"
    for name in members:
        member = inspect.getattr_static(thing, name)
        yield f"### {thing.__name__}.{name}\n\n" + "\n\n".join(filter(None, member_parts(name, member)))


def member_parts(name: str, member: Any) -> Iterator[str]:
    if isinstance(member, property | cached_property):
        function: Any = member.fget if isinstance(member, property) else member.func
        yield code(f"{name}: {inspect.signature(function).return_annotation}")
        yield prose(function)
    else:
        function = getattr(member, "__func__", member)
        yield code(call(name, function))
        yield prose(function)


def signature(before: str, thing: Any) -> str:
    if is_typeddict(thing):
        members = (f"{name}: {kind.__forward_arg__}" for name, kind in thing.__annotations__.items())
        return code(f"{before}\n\n" + "\n".join(members))
    is_plain = isinstance(thing, type) and not (is_dataclass(thing) or issubclass(thing, msgspec.Struct))
    calls = [] if is_plain else [call(thing.__name__, function) for function in get_overloads(thing) or [thing]]
    return code("\n\n".join([before, *calls]))


def call(name: str, function: Callable[..., Any]) -> str:
    """Return ``name(a: int, *, b: str) -> str``, with a line per parameter if one line is too long."""
    function_signature = inspect.signature(function)
    parameters = [
        parameter for parameter in function_signature.parameters.values() if parameter.name not in ("self", "cls")
    ]
    formatted = list(with_star(parameters))
    result = "" if isinstance(function, type) else f" -> {function_signature.return_annotation}"
    line = f"{name}({', '.join(formatted)}){result}"
    return line if len(line) <= WIDTH else f"{name}(\n    " + ",\n    ".join(formatted) + f",\n){result}"


def with_star(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Yield the parameters, with a slash after the positional-only ones and a star before the first keyword-only
    one."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    is_open = True
    for before, parameter in pairwise([None, *parameters]):
        assert parameter is not None
        if before and before.kind is before.POSITIONAL_ONLY and parameter.kind is not parameter.POSITIONAL_ONLY:
            yield "/"
        if parameter.kind is parameter.KEYWORD_ONLY and is_open:
            yield "*"
        is_open = is_open and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        yield f"{stars.get(parameter.kind, '')}{parameter.name}: {type_of(parameter)}{default_of(parameter)}"


def type_of(parameter: inspect.Parameter) -> str:
    """Return the type as it is written; structs of msgspec have evaluated types."""
    annotation = parameter.annotation
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return text.replace("typing.", "").replace("collections.abc.", "")


def default_of(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return ""
    if isinstance(parameter.default, MatchOptions):
        return " = MatchOptions()"
    return " = ..." if "factory" in repr(parameter.default) else f" = {parameter.default!r}"


def code(text: str) -> str:
    return f"```python\n{text}\n```"


def prose(thing: Any) -> str:
    """Return a docstring as Markdown: ``this`` becomes `this`, indented text becomes a code block."""
    text = inspect.cleandoc(thing.__doc__ or "").replace("``", "`")
    blocks = (f"```text\n{dedent(b)}\n```" if b.startswith("    ") else b for b in text.split("\n\n"))
    return "\n\n".join(blocks)


# -- docs/reference/readings.md ------------------------------------------------------------------------------------

MARK = re.compile(r"^(?P<lead>[^\n]*?)(?P<comment># )?(?P<kind>Reading|Deviation): (?P<text>[^\n]+)$", re.MULTILINE)


def readings_page() -> str:
    """Return the page of all `Reading:` and `Deviation:` marks of the code."""
    head = (
        "Where a specification can be read in more than one way, the code states its interpretation (*Reading*). "
        "Where the code differs from a specification, it says so (*Deviation*). This page lists all of them; the rules "
        "for definitions are in [semantics](../semantics.md)."
    )
    return page("Readings", wrapped(head), *readings())


def readings() -> Iterator[str]:
    for path in sorted(SOURCE.rglob("*.py")):
        marks = [f"- *{kind}:* {text}" for kind, text in marks_in(path.read_text())]
        if marks:
            name = path.relative_to(ROOT).as_posix()
            yield f"**[{name}](../../{name})**\n\n" + "\n".join(map(wrapped, marks))


def marks_in(source: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of each mark, to the end of its comment or paragraph."""
    lines = source.splitlines()
    for number, line in enumerate(lines):
        mark = MARK.match(line)
        if not mark or mark["lead"].strip().startswith(('"', "yield", "def")):
            continue
        yield mark["kind"], " ".join([mark["text"], *continued(lines[number + 1 :], bool(mark["comment"]))])


def continued(lines: list[str], is_comment: bool) -> Iterator[str]:
    for line in lines:
        text = line.strip()
        if is_comment != text.startswith("#") or not text or text.startswith('"""') or MARK.match(line):
            return
        yield text.removeprefix("#").strip()


# -- docs/reference/codes ------------------------------------------------------------------------------------------

CONTEXTS: dict[str, str] = {
    "message": "The examples are the message `/messagegroups/GROUP/messages/m`.",
    "endpoint": "The examples are the endpoint `/endpoints/ENDPOINT`.",
    "documents": "The examples are two documents of one catalogue.",
    "upgrade": "The examples are a document before and after `wirebook upgrade`.",
}


def code_pages() -> dict[Path, str]:
    """Return a page for each lint rule, and their index."""
    folder = DOCS / "reference" / "codes"
    return {folder / "README.md": codes_page()} | {
        folder / f"{code}.md": rule_page(rule) for code, rule in rules().items()
    }


def codes_page() -> str:
    rows = [f"| [`{code}`]({code}.md) | {CODES[code].severity} | {CODES[code].title} |" for code in rules()]
    head = "The rules of `wirebook lint`. Each page has the problem, its fix, and an example. All other codes:\n"
    table = "\n".join(["| code | severity | meaning |", "|---|---|---|", *rows])
    return page("Lint rules", f"{head}[outcomes](../../outcomes.md#problem-codes).", table)


def rule_page(rule: Rule) -> str:
    known = CODES[rule.code]
    parts = [f"**{known.severity}**: {known.title}.", wrapped(rule.why), wrapped(f"**How to fix:** {rule.fix}")]
    parts += [CONTEXTS[rule.kind]] if rule.kind in CONTEXTS else []
    for name, example in (("Wrong", rule.bad), ("Right", rule.good)):
        parts += [f"## {name}", example_of(rule.kind, example)]
    return page(f"`{rule.code}`", *parts, "[All rules](README.md)")


def example_of(kind: str, example: Any) -> str:
    if kind in ("command", "text"):
        text = str(example) if len(str(example)) < 400 else f"{str(example)[:60]} ... {str(example)[-20:]}"
        text = text.replace("\ufeff", "<U+FEFF>")
        return f"```{'sh' if kind == 'command' else 'text'}\n{text}\n```"
    if kind == "hex":
        text = bytes.fromhex(example["bytes"]).decode("latin-1")
        return f"```text\n{text}\n```\n\nThe bytes: `{example['bytes']}`"
    documents = example if kind == "documents" else [example]
    return "\n\n".join(f"```json\n{format_json(value)}\n```" for value in documents)


def format_json(value: Any, indent: int = 0) -> str:
    """Return JSON with a line per member, unless the value fits on one line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= 96 and indent:
        return line
    if not isinstance(value, dict | list) or not value:
        return line
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        lines = [f"{inner}{json.dumps(name)}: {format_json(item, indent + 2)}" for name, item in value.items()]
    else:
        lines = [f"{inner}{format_json(item, indent + 2)}" for item in value]
    start, end = "{}" if isinstance(value, dict) else "[]"
    return f"{start}\n" + ",\n".join(lines) + f"\n{' ' * indent}{end}"


# -- docs/decisions/README.md --------------------------------------------------------------------------------------

RECORD = re.compile(r"# (?P<number>\d{4}): (?P<title>.+)\n\nDate: (?P<date>[\d-]{10})\. Status: (?P<status>.+)\.\n")
SUBJECTS: dict[str, str] = {
    "Messages and catalogues": (
        "0005 0020 0030 0052 0054 0055 0056 0062 0065 0066 0084 0085 0087 0165 0166 0167 0168 0169 0170 0171 0172 0173 "
        "0175"
    ),
    "Schemas": "0041 0042 0050 0051 0080 0081 0082 0083 0090 0091 0092 0093 0163",
    "Registry": (
        "0094 0095 0096 0097 0098 0099 0100 0101 0102 0103 0104 0105 0106 0107 0108 0109 0111 0112 0117 0120 0125 0140 "
        "0150 0151 0152 0155 0156 0157 0158 0159 0160 0161 0162 0193"
    ),
    "Landing": (
        "0003 0004 0006 0010 0011 0012 0013 0014 0040 0058 0059 0060 0061 0063 0070 0071 0074 0075 0192 0194 0195 0196 "
        "0197 0198 0199 0200 0201 0202 0203 0204 0205 0206 0207 0208 0209 0210 0211 0212 0213 0214 0215 "
        "0216 0218 0219 0220 0221 0222 0223 0224 0225 0226 0227 0228 0229"
    ),
    "Command line": "0032 0057 0067 0180 0181 0182",
    "Tests and tools": "0001 0002 0031 0078 0113 0185 0186 0190 0191 0217",
}


def decisions_page() -> str:
    """An index of the decision records, grouped by subject."""
    records = {path.name[:4]: path for path in sorted((DOCS / "decisions").glob("[0-9]*.md"))}
    listed = [number for numbers in SUBJECTS.values() for number in numbers.split()]
    if sorted(listed) != sorted(records):
        wrong = ", ".join(sorted(set(listed) ^ set(records)))
        raise SystemExit(f"docs: SUBJECTS in scripts/docs.py must list every decision record once; see {wrong}")
    head = (
        "Each record states a question, the choice, its costs, and when to revisit it, within 40 lines. The code cites "
        "records by their number. A new record also needs a place in `SUBJECTS` in `scripts/docs.py`."
    )
    table = "| number | decision | date | status |\n|---|---|---|---|"
    sections = (
        "\n".join([f"## {subject}\n", table, *(decision_row(records[number]) for number in numbers.split())])
        for subject, numbers in SUBJECTS.items()
    )
    return page("Decisions", wrapped(head), *sections)


def decision_row(path: Path) -> str:
    record = RECORD.match(path.read_text())
    if record is None or record["number"] != path.name[:4]:
        form = "'# NNNN: Title', an empty line, 'Date: YYYY-MM-DD. Status: accepted.'"
        raise SystemExit(f"docs: {path.relative_to(ROOT)} must begin with {form}")
    return f"| [{record['number']}]({path.name}) | {record['title']} | {record['date']} | {record['status']} |"


# -- tables between markers ------------------------------------------------------------------------------------------


def codes_table() -> str:
    """Return the tables of all problem codes, by the groups of their file; those of rejected requests come last."""
    rows = []
    for line in inspect.getsource(codes).splitlines():
        if group := re.match(r"    # -- (.+?) -+$", line):
            rows.append(f"\n**{group[1][0].upper()}{group[1][1:]}**\n\n| code | severity | meaning |\n|---|---|---|")
        elif row := re.match(r'    \("([a-z0-9-]+)", ', line):
            entry = CODES[row[1]]
            named = f"[`{entry.name}`](reference/codes/{entry.name}.md)" if entry.name in rules() else f"`{entry.name}`"
            rows.append(f"| {named} | {entry.severity} | {entry.title} |")
    rows.append("\n**Rejected requests to a registry**\n\n| code | HTTP status | title |\n|---|---|---|")
    rows += [f"| `{entry.name}` | {entry.status} | `{entry.title}` |" for entry in CODES.values() if entry.status]
    return "\n".join(rows)


TABLES: dict[str, tuple[str, Callable[[], str]]] = {"codes": ("outcomes.md", codes_table)}


def between_marks(text: str, name: str, content: str) -> str:
    start, end = f"<!-- begin {name} (written by scripts/docs.py) -->", f"<!-- end {name} -->"
    before, _, rest = text.partition(start)
    _, end_mark, after = rest.partition(end)
    if not end_mark:
        raise SystemExit(f"docs: the markers of '{name}' are missing")
    return f"{before}{start}\n{content}\n\n{end}{after}"


# -- all of it -----------------------------------------------------------------------------------------------------


def page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", NOTICE, *parts]) + "\n"


def wrapped(text: str) -> str:
    """Return the text in lines of at most `WIDTH` characters. Further lines of a list item are indented."""
    indent, lines = "  " if text.startswith("- ") else "", [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= WIDTH:
            lines.append(indent + word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return "\n".join(lines)


def generated() -> dict[Path, str]:
    """Return the content of all pages that are generated completely or in part."""
    pages = {
        DOCS / "reference" / "cli.md": cli_page(),
        DOCS / "reference" / "python.md": python_page(),
        DOCS / "reference" / "readings.md": readings_page(),
        DOCS / "decisions" / "README.md": decisions_page(),
        **code_pages(),
    }
    for name, (file, table) in TABLES.items():
        path = DOCS / file
        pages[path] = between_marks(pages.get(path) or path.read_text(), name, table())
    return pages


def main() -> int:
    parser = ArgumentParser(description="Write the pages that are generated from code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page is outdated")
    is_check = parser.parse_args().check
    pages = generated()
    stale = {path: text for path, text in pages.items() if not path.exists() or path.read_text() != text}
    left_over = sorted(set((DOCS / "reference" / "codes").glob("*.md")) - pages.keys())
    for path, text in stale.items():
        print(f"{'outdated' if is_check else 'wrote'}: {path.relative_to(ROOT)}")
        if not is_check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    for path in left_over:
        print(f"{'left over' if is_check else 'removed'}: {path.relative_to(ROOT)}")
        if not is_check:
            path.unlink()
    return 1 if (stale or left_over) and is_check else 0


if __name__ == "__main__":
    sys.exit(main())
