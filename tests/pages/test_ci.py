"""The hooks and the workflow of docs/how-to/lint-in-ci.md: definitions and steps."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Sarif

from tests.pages.fences import DOCS, ROOT, fences, search_path

PAGE = DOCS / "how-to" / "lint-in-ci.md"
BIKES = DOCS / "examples" / "bikes.xreg.json"


def file_of(name: str) -> str:
    (body,) = (fence.body for fence in fences(PAGE.read_text()) if fence.word("file") == name)
    return body


def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PATH": search_path(), "PRE_COMMIT_HOME": f"{folder}/.cache"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("kind", ["manifest", "config"])
def test_hook_definitions_are_valid_for_pre_commit(kind: str, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(file_of("remote.yaml"))
    (tmp_path / "manifest").write_text((ROOT / ".pre-commit-hooks.yaml").read_text())
    done = run("pre-commit", f"validate-{kind}", kind, folder=tmp_path)
    assert done.returncode == 0, done.stdout


def test_hooks_of_the_page_are_defined() -> None:
    defined = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    (remote,) = yaml.safe_load(file_of("remote.yaml"))["repos"]
    assert {hook["id"] for hook in remote["hooks"]} == set(defined)
    (local,) = yaml.safe_load(file_of(".pre-commit-config.yaml"))["repos"]
    for hook in local["hooks"]:
        assert hook["files"] == defined[hook["id"]]["files"]
        assert hook["entry"].startswith(defined[hook["id"]]["entry"])


def steps() -> list[dict[str, Any]]:
    workflow = yaml.safe_load(file_of(".github/workflows/catalogue.yml"))
    return workflow["jobs"]["lint"]["steps"]  # type: ignore[no-any-return]


def test_workflow_installs_the_packages_of_the_hooks() -> None:
    (remote,) = yaml.safe_load(file_of("remote.yaml"))["repos"]
    installs = [step["run"] for step in steps() if step.get("run", "").startswith("pip")]
    assert installs == [f"pip install git+{remote['repo']}@{remote['rev']}"]


def run_workflow(folder: Path, catalogue: str) -> dict[str, int]:
    """Run the steps with a command as GitHub's runner does, also behind one that failed; gives their exit codes."""
    (folder / "catalogue").mkdir()
    (folder / "catalogue" / "bikes.xreg.json").write_text(catalogue)
    commands = [step["run"] for step in steps() if "run" in step and not step["run"].startswith("pip")]
    shell = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
    return {command.split(" catalogue/")[0]: run(*shell, command, folder=folder).returncode for command in commands}


@pytest.mark.parametrize(
    ("old", "new", "order", "lint"),
    [("", "", 1, 0), ('"qos": 1', '"qos": 3', 1, 1), ('"specversion"', "specversion", 2, 2)],
    ids=["not in order", "an error", "no JSON"],
)
def test_workflow_step_fails_for_an_invalid_catalogue(
    old: str, new: str, order: int, lint: int, tmp_path: Path
) -> None:
    exit_codes = run_workflow(tmp_path, BIKES.read_text().replace(old, new, 1))
    assert exit_codes == {"wirebook lint --format sarif": lint, "wirebook fmt --check": order}
    Sarif.model_validate_json((tmp_path / "findings.sarif").read_text())


def test_workflow_steps_pass_for_a_valid_catalogue(tmp_path: Path) -> None:
    good = tmp_path / "good.json"
    good.write_text(BIKES.read_text())
    assert run("wirebook", "fmt", "good.json", folder=tmp_path).returncode == 0
    assert set(run_workflow(tmp_path, good.read_text()).values()) == {0}
