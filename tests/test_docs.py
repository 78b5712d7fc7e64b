"""The documentation is true: what the code cites is there, examples run and print that.

How an example is written: tests/pages/fences.py. Every command that a page shows is one.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import wirebook.landing
import wirebook.spark
from tests.pages.fences import DOCS, FENCE, ROOT, Fence, examples_of, fences, is_example, name_of, run_examples
from wirebook.cli.app import COMMANDS as COMMAND_LINE
from wirebook.problems import CODES

PAGES = sorted(path for path in DOCS.rglob("*.md") if path.parent.name != "decisions")
CODE = sorted(path for folder in ("src", "tests", "scripts", "benchmarks") for path in (ROOT / folder).rglob("*.py"))
RECORDS = sorted((DOCS / "decisions").glob("*.md"))
README = ROOT / "README.md"
TEXTS = [*CODE, *PAGES, README]
GUIDES = [README, *(page for page in PAGES if "reference" not in page.parts)]


# -- what is cited is there ----------------------------------------------------------------------------------------

RULE = re.compile(r"\b([RD])([1-9][0-9]?)\b")
RANGE = re.compile(r"\b([RD])([1-9][0-9]?)-\1([1-9][0-9]?)\b")
DEFINED = re.compile(r'<a id="([rd]\d+)"></a>\*\*([RD]\d+)\*\*')
CITED_PATH = re.compile(
    r"(?<![/\w])docs/(?P<path>[A-Za-z0-9_/.-]*[A-Za-z0-9_-](?:\.md)?)(?:#(?P<anchor>[A-Za-z0-9_-]+))?"
)
LINK = re.compile(r"\]\((?!https?:)(?P<path>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")
# Names of pages that are no part of this repository.
ELSEWHERE = re.compile(
    r"\.\./shared|\bdesign/|\bmessage-semantics\b|\bpipeline-notes\b|\btestbed\b|\bcontracts \(|\bpipeline \("
    r"|\bbindings section|\b(?:contracts|bindings|dialects|pipeline|message-semantics)\.md"
)


def rules_in(text: str) -> set[str]:
    """Every rule that a text names; of a range all of it."""
    named = {letter + number for letter, number in RULE.findall(text)}
    for letter, first, last in RANGE.findall(text):
        named |= {f"{letter}{number}" for number in range(int(first), int(last) + 1)}
    return named


def anchors_of(page: Path) -> set[str]:
    """The places a link may lead to: headings, as GitHub names them, and anchors."""
    text = FENCE.sub("", page.read_text())
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)">', text))


def test_semantics_has_every_rule_once() -> None:
    defined = DEFINED.findall((DOCS / "semantics.md").read_text())
    assert all(anchor == rule.lower() for anchor, rule in defined)
    expected = [f"R{n}" for n in range(1, 34)] + [f"D{n}" for n in range(1, 56)]
    assert sorted(rule for _, rule in defined) == sorted(expected)


def test_rules_named_in_the_code_exist() -> None:
    known = {rule for _, rule in DEFINED.findall((DOCS / "semantics.md").read_text())}
    sources = [path for path in CODE if path.is_relative_to(ROOT / "src")]
    assert not [(name_of(path), rule) for path in sources for rule in rules_in(path.read_text()) - known]


def test_cited_pages_exist() -> None:
    cited = [(path, citation) for path in TEXTS for citation in CITED_PATH.finditer(path.read_text())]
    assert not [
        (name_of(path), citation[0]) for path, citation in cited if not is_there(citation["path"], citation["anchor"])
    ]


def is_there(cited: str, anchor: str | None) -> bool:
    """Is the page there, and the anchor in it? A decision may be cited by its number."""
    if re.fullmatch(r"decisions/\d{4}", cited):
        return bool(list(DOCS.glob(f"{cited}-*.md")))
    page = DOCS / cited
    return page.exists() and (not anchor or anchor in anchors_of(page))


def test_no_page_outside_the_repository_is_cited() -> None:
    citations = [(path, ELSEWHERE.search(path.read_text())) for path in TEXTS if path != Path(__file__)]
    assert not [(name_of(path), match[0]) for path, match in citations if match]


def test_link_targets_exist() -> None:
    links = [(page, link) for page in [*TEXTS, *RECORDS] for link in links_in(page)]
    assert not [(name_of(page), link[0]) for page, link in links if not leads_somewhere(page, link)]


def links_in(page: Path) -> Iterator[re.Match[str]]:
    return LINK.finditer(FENCE.sub("", page.read_text())) if page.suffix == ".md" else iter(())


def leads_somewhere(page: Path, link: re.Match[str]) -> bool:
    target = page.parent / link["path"] if link["path"] else page
    return target.exists() and (not link["anchor"] or link["anchor"] in anchors_of(target))


def test_every_page_is_in_the_index() -> None:
    index = (DOCS / "README.md").read_text()
    rules = (DOCS / "reference" / "codes" / "README.md").read_text()
    index += "".join(f"reference/codes/{name}" for name in re.findall(r"\(([a-z0-9-]+\.md)\)", rules))
    assert not [name_of(page) for page in PAGES if page.relative_to(DOCS).as_posix() not in index + "README.md"]


# -- the reference --------------------------------------------------------------------------------------------------


def test_python_reference_has_the_public_functions() -> None:
    page = (DOCS / "reference" / "python.md").read_text()
    names = [f"{module.__name__}.{name}" for module in (wirebook.landing, wirebook.spark) for name in module.__all__]
    assert names
    assert not [name for name in names if f"\n## {name}\n" not in page]


def test_every_code_is_in_outcomes() -> None:
    page = (DOCS / "outcomes.md").read_text()
    assert not [code for code in CODES if f"| `{code}` |" not in page and f"| [`{code}`](" not in page]


@pytest.mark.parametrize("record", [page for page in RECORDS if page.name != "README.md"], ids=name_of)
def test_decision_record_has_four_sections(record: Path) -> None:
    assert re.findall(r"^\*\*(\w+)\.?\*\*", record.read_text(), re.MULTILINE) == [
        "Question",
        "Choice",
        "Costs",
        "Revisit",
    ]


# -- examples ------------------------------------------------------------------------------------------------------


def test_json_fences_are_valid_json() -> None:
    for page in PAGES:
        for fence in fences(page.read_text()):
            if fence.language == "json":
                json.loads(fence.body)
            for line in fence.body.splitlines() if fence.language == "jsonl" else ():
                json.loads(line)


COMMANDS = {"sh", "bash", "shell", "console", "python", "sql"}


def test_every_command_occurs_in_an_example() -> None:
    """No fence with a command goes without a test."""
    commands = [(page, fence) for page in GUIDES for fence in fences(page.read_text()) if fence.language in COMMANDS]
    left = [f"{name_of(page)}:{fence.line}" for page, fence in commands if not is_run(fence)]
    assert commands
    assert not left


def is_run(fence: Fence) -> bool:
    """Is it run here, a file that is, or, line by line, in another file of the repository?"""
    if fence.word("by"):
        assert not fence.word("by").endswith(".md")
        elsewhere = (ROOT / fence.word("by")).read_text()
        return all(line.split("  #")[0].strip() in elsewhere for line in fence.body.splitlines())
    return is_example(fence)


OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
INLINE = re.compile(r"`([^`\n]+)`")


def test_documented_options_exist() -> None:
    """No page names an option that no command has."""
    programs = [*sorted((ROOT / "benchmarks").rglob("run.py")), *sorted((ROOT / "scripts").glob("*.py"))]
    tools = [ROOT / "run", *programs]
    known = set(OPTION.findall("".join(file.read_text() for file in [DOCS / "reference" / "cli.md", *tools])))
    named = [(page, option) for page in GUIDES for option in options_named(page)]
    assert named
    assert not [(name_of(page), option) for page, option in named if option not in known]


def options_named(page: Path) -> list[str]:
    prose = FENCE.sub("", page.read_text())
    return [option for code in INLINE.findall(prose) for option in OPTION.findall(code)]


def test_commands_of_the_readme_exist() -> None:
    named = re.findall(r"^\| `wirebook (\w+)", README.read_text(), re.MULTILINE)
    assert set(named) == set(COMMAND_LINE)


def pages_with_examples() -> Iterator[tuple[Path, str]]:
    """Pages, and how their programs run Spark: "no", "own", or the fixture of the Java process that they share."""
    for page in GUIDES:
        examples = examples_of(page)
        words = {word for fence in examples if "spark" in fence.words for word in fence.words}
        if not examples:
            continue
        if not words:
            yield page, "no"
        elif "own" in words:
            yield page, "own"
        else:
            yield page, "kafka_java" if any("apache" in fence.words for fence in examples) else "one_java"


EXAMPLES = [*pages_with_examples()]
GROUPS = {"one_java": "servers", "kafka_java": "kafka"}


@pytest.mark.parametrize("page", [page for page, java in EXAMPLES if java == "no"], ids=name_of)
def test_examples_run(page: Path, tmp_path: Path) -> None:
    run_examples(page, tmp_path)


@pytest.mark.spark
@pytest.mark.timeout(1800)  # a page may start Spark many times
@pytest.mark.parametrize("page", [page for page, java in EXAMPLES if java == "own"], ids=name_of)
def test_examples_with_spark_run(page: Path, tmp_path: Path) -> None:
    run_examples(page, tmp_path)


@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("page", "java"),
    [
        pytest.param(page, java, marks=pytest.mark.xdist_group(GROUPS[java]), id=name_of(page))
        for page, java in EXAMPLES
        if java in GROUPS
    ],
)
def test_examples_run_with_shared_java(page: Path, java: str, request: pytest.FixtureRequest) -> None:
    """They run in the folder of the Java process, in which it looks for relative paths."""
    kafka = request.getfixturevalue("kafka").plain if java == "kafka_java" else ""
    variables, folder = request.getfixturevalue(java), request.getfixturevalue(f"{java}_folder")
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    run_examples(page, folder, variables, kafka)
