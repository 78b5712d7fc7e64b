"""Rules about the project as a whole: layers, problem codes, the Quick start of the README, the command runner."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from wirebook.problems import CODES, error_types

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "wirebook"
MODULES = sorted(SOURCE.rglob("*.py"))

LAYERS = (
    "problems",
    "text",
    "core",
    "schema",
    "bindings",
    "convert",
    "definitions",
    "storage",
    "httpapi",
    "client",
    "catalog",
    "capture",
    "landing",
    "spark",
    "demo",
    "cli",
)

# What a layer must not know although it stands above it.
BARRED = {layer: {"storage", "httpapi"} for layer in ("client", "landing", "spark")}

# Packages that one layer alone may know; `core` may know none of these, nor the clock, the environment, files of logs.
ONLY_IN = {
    "pyspark": {"spark"},
    "deltalake": {"landing"},
    "obstore": {"landing"},
    "openlineage": {"landing"},
    "pyiceberg": {"landing"},
    "starlette": {"httpapi"},
    "uvicorn": {"httpapi", "cli"},
    "sqlalchemy": {"storage"},
    "alembic": {"storage"},
    "httpx": {"client", "convert", "httpapi"},
    "prometheus_client": {"capture", "httpapi", "landing"},
    "confluent_kafka": {"capture", "convert"},
    "paho": {"capture", "convert"},
    "aiomqtt": {"convert"},
    "nats": {"capture", "convert"},
    "proton": {"capture", "convert"},
    "cloudevents": {"convert", "definitions"},
    "typer": {"cli"},
    "rich": {"cli"},
}
IMPURE = {"os", "time", "logging", "socket", "sqlite3", "subprocess", "random", "urllib.request", "http"}


def names_imported(module: Path) -> Iterator[str]:
    """Every module that a file imports, anywhere in it, by its full name."""
    for node in ast.walk(ast.parse(module.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: a relative import hides its layer"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer_of(module: Path) -> str | None:
    parts = module.relative_to(SOURCE).parts
    return parts[0] if len(parts) > 1 else None


def wrong_imports(module: Path) -> Iterator[str]:
    layer = layer_of(module)
    if layer is None:
        return
    allowed = set(LAYERS[: LAYERS.index(layer) + 1]) - BARRED.get(layer, set())
    for name in names_imported(module):
        first, _, rest = name.partition(".")
        target = rest.partition(".")[0]
        if first == "wirebook" and target in LAYERS and target not in allowed:
            yield f"{layer} imports {name}, of a layer above it"
        if first in ONLY_IN and layer not in ONLY_IN[first]:
            yield f"{layer} imports {name}, which only {ONLY_IN[first]} may know"
        if layer == "core" and any(f"{name}.".startswith(f"{impure}.") for impure in IMPURE):
            yield f"core imports {name} and is to be pure"


def test_every_package_is_a_layer() -> None:
    assert {layer_of(module) for module in MODULES} - {None} <= set(LAYERS)


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_point_up_the_list_of_layers(layer: str) -> None:
    imports = [(str(m.relative_to(SOURCE)), w) for m in MODULES if layer_of(m) == layer for w in wrong_imports(m)]
    assert not imports


def test_delta_lake_is_known_to_its_table_format_alone() -> None:
    inside = SOURCE / "landing" / "tables"
    parts = [module for module in MODULES if module.parent == inside and module.stem.startswith("delta")]
    others = set(MODULES) - {*parts, inside / "all_formats.py"}
    prefix = "wirebook.landing.tables.delta"
    assert not [(str(m), name) for m in others for name in names_imported(m) if name.startswith(prefix)]


def codes_used(module: Path) -> Iterator[str]:
    """The problem codes that a file gives as `code="..."`."""
    for node in ast.walk(ast.parse(module.read_bytes())):
        if isinstance(node, ast.keyword) and node.arg == "code" and isinstance(node.value, ast.Constant):
            yield node.value.value


def test_every_problem_code_used_is_in_the_table() -> None:
    missing = {(str(m.relative_to(SOURCE)), code) for m in MODULES for code in codes_used(m) if code not in CODES}
    assert not missing


def test_problem_codes_are_kebab_case_and_unique() -> None:
    source = (SOURCE / "problems" / "codes.py").read_text()
    listed = re.findall(r'^    \("([^"]+)", (?:ERROR|WARNING|INFO), ', source, re.MULTILINE)
    assert sorted(listed) == sorted(name for name, code in CODES.items() if not code.status)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code) for code in listed)


def test_error_types_are_snake_case_and_unique() -> None:
    listed = [name for rows in (error_types.SPEC, error_types.HTTP, error_types.OWN) for name, _, _ in rows]
    assert sorted(listed) == sorted(name for name, code in CODES.items() if code.status)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) for name in listed)


def quick_start() -> list[str]:
    """The `sh` blocks of the README's section Quick start."""
    section = re.search(
        r"^## Quick start\n(.*?)(?=^## |\Z)", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert section
    return re.findall(r"^```sh[^\n]*\n(.*?)^```$", section[1], re.MULTILINE | re.DOTALL)


def test_quick_start_has_two_blocks_of_one_line() -> None:
    assert [block.count("\n") for block in quick_start()] == [1, 1]


def test_ci_calls_the_test_command_of_the_readme() -> None:
    assert f"\nstep {quick_start()[1]}" in (ROOT / ".ci" / "run").read_text()


def test_the_command_runner_lists_its_commands() -> None:
    listing = subprocess.run([ROOT / "run"], capture_output=True, text=True, check=True).stdout
    assert {"test", "check", "setup", "ci"} <= {line.split()[0] for line in listing.splitlines()[2:]}


def test_the_lock_file_names_public_hosts_only() -> None:
    hosts = set(re.findall(r"https?://([^/\"]+)", (ROOT / "uv.lock").read_text()))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}


def test_decisions_fit_on_a_page() -> None:
    decisions = sorted((ROOT / "docs" / "decisions").glob("[0-9][0-9][0-9][0-9]-*.md"))
    assert decisions
    assert {d.name: n for d in decisions if (n := len(d.read_text().splitlines())) > 40} == {}
