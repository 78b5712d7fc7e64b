"""Optional dependencies: commands that run without them, and the error for a missing one."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

import pytest

from wirebook.problems import WirebookError
from wirebook.problems.extras import EXTRAS, library

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BASE_ONLY = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
from wirebook.cli import main
main({arguments!r})
"""


def name_of(requirement: str) -> str:
    match = re.match(r"[\w.-]+", requirement)
    assert match
    return match[0].lower().replace("_", "-")


def installed_without_extras() -> set[str]:
    """The distributions that `pip install .` installs."""
    names: set[str] = set()
    queue = [name_of(requirement) for requirement in PROJECT["dependencies"]]
    while queue:
        name = queue.pop()
        if name in names:
            continue
        names.add(name)
        with suppress(PackageNotFoundError):  # required on other systems and versions of Python alone
            queue += [name_of(line) for line in distribution(name).requires or [] if "extra ==" not in line]
    return names


def modules_of_extras() -> set[str]:
    base = installed_without_extras() | {"wirebook"}
    modules = packages_distributions().items()
    return {module for module, names in modules if not {name.lower().replace("_", "-") for name in names} & base}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = BASE_ONLY.format(blocked=modules_of_extras(), arguments=list(arguments))
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)


def test_every_extra_of_the_table_is_declared() -> None:
    assert set(EXTRAS.values()) <= set(PROJECT["optional-dependencies"])


def test_pyspark_is_not_a_base_dependency() -> None:
    blocked = modules_of_extras()
    assert {"pyspark", "pandas", "sqlalchemy", "starlette", "psycopg", "lxml", "google", "deltalake"} <= blocked


def test_catalogue_commands_run_without_extras(tmp_path: Path) -> None:
    def passes(*arguments: str) -> str:
        done = run(tmp_path, *arguments)
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout

    passes("init", "--yes")
    capture = next(tmp_path.glob("*.jsonl")).name
    catalogue = next(tmp_path.glob("*.xreg.*")).name
    passes("lint", catalogue)
    passes("fmt", "--check", catalogue)
    passes("schema")
    assert "matched" in passes("match", capture, "--catalog", catalogue)
    passes("explain", capture, "--catalog", catalogue)
    passes("land", capture, "--catalog", catalogue, "--to", "tables", "--local")
    passes("show", "tables")
    passes("replay", "tables", "--catalog", catalogue, "--local")


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("land", "x.jsonl", "--catalog", "c.xreg.json", "--to", "t"), "spark"),
        (("demo",), "spark"),
        (("serve", "--db", "r.db"), "serve"),
    ],
)
def test_missing_extra_is_named_with_the_command_that_installs_it(
    arguments: tuple[str, ...], extra: str, tmp_path: Path
) -> None:
    (tmp_path / "x.jsonl").write_text('{"protocol": "KAFKA", "topic": "t", "headers": [], "value": "x"}\n')
    (tmp_path / "c.xreg.json").write_text('{"specversion": "1.0-rc4", "messagegroups": {"g": {"messages": {}}}}')
    done = run(tmp_path, *arguments)
    assert done.returncode == 2
    assert "missing-extra" in done.stderr
    assert f"pip install 'wirebook[{extra}]'" in done.stderr


def test_unknown_modules_keep_their_error() -> None:
    with pytest.raises(ModuleNotFoundError):
        library("no_such_module_of_anybody")


def test_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(WirebookError, match=r"missing-extra") as error:
        library("deltalake")
    assert error.value.problems[0].hint == "pip install 'wirebook[delta]'"
