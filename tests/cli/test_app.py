"""The frame of the command line: what is listed, what becomes of errors, what is imported."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from wirebook.cli import app
from wirebook.problems import Problem, WirebookError

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
PROBLEM = Problem(code="syntax-error", message="expected ',' and found '}'", file="a.json", line=2, column=9)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Any]], None]:
    """Puts a function in the place of every command, as `try`."""

    def install(function: Callable[..., Any]) -> None:
        module = types.ModuleType("wirebook.cli.trial")
        module.__spec__ = types.SimpleNamespace(name="wirebook.cli.trial")  # type: ignore[assignment]
        module.__dict__["trial"] = function
        monkeypatch.setitem(sys.modules, "wirebook.cli.trial", module)
        monkeypatch.setattr(app, "COMMANDS", {"trial": app.Command("wirebook.cli.trial", "trial", "Try it.")})

    return install


def raising(error: BaseException) -> Callable[[], None]:
    def trial() -> None:
        raise error

    return trial


@pytest.mark.parametrize(("result", "code"), [(None, 0), (0, 0), (1, 1), (2, 2)])
def test_what_a_command_returns_is_the_exit_code(command: Any, result: int | None, code: int) -> None:
    command(lambda: result)
    assert app.run(["trial"]) == code


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (WirebookError(PROBLEM), 2, "a.json:2:9: error: expected ',' and found '}' [syntax-error]\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (typer.Exit(1), 1, ""),
        (
            ValueError("one\ntwo"),
            2,
            "error: ValueError: one [internal-error]; set WIREBOOK_DEBUG=1 to print a traceback\n",
        ),
    ],
)
def test_what_becomes_of_an_error(
    command: Any, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, said: str
) -> None:
    command(raising(error))
    assert app.run(["trial"]) == code
    assert capsys.readouterr().err == said


def test_the_traceback_on_request(
    command: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WIREBOOK_DEBUG", "1")
    command(raising(ValueError("one")))
    assert app.run(["trial"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_wrong_command_line(command: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def trial(to: Annotated[str, typer.Option()]) -> None:
        print(to)

    command(trial)
    assert [app.run(line) for line in (["trial"], ["trial", "--tO", "x"], ["tril"], [])] == [2, 2, 2, 2]
    said = capsys.readouterr()
    assert said.out == ""
    assert "wirebook trial: Missing option '--to'" in said.err
    assert "No such command 'tril'. Did you mean 'trial'?" in said.err


def test_only_commands_that_exist_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["--help"]) == 0
    listing = capsys.readouterr().out
    for name in app.COMMANDS:
        assert f"\n  {name} " in listing


@pytest.mark.parametrize("name", app.COMMANDS)
def test_every_command_loads_and_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: wirebook {name}")


def loaded_by(program: str) -> set[str]:
    """The modules that are there after a program of Python, in a process of its own."""
    shown = f"import sys; {program}; print(*sys.modules, file=sys.stderr)"
    return set(subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True).stderr.split())


def test_help_imports_nothing_heavy() -> None:
    loaded = loaded_by("from wirebook.cli.app import run; run(['--help'])")
    assert not {"pyspark", "pyarrow", "polars", "pandas", "numpy", "httpx", "rich.table"} & loaded


def test_a_server_is_ready_without_what_lands_messages() -> None:
    assert not {"pyspark", "pyarrow", "pandas", "numpy"} & loaded_by("import wirebook.httpapi.server")


@pytest.mark.parametrize("command", ["fmt --check", "upgrade"])
def test_writing_a_document_anew_loads_nothing_that_reads_messages(command: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"specversion": "1.0-rc4", "messagegroups": {"a": {"messagegroupid": "a"}}}')
    loaded = loaded_by(f"from wirebook.cli.app import run; run([*{command.split()}, {str(tmp_path / 'a.json')!r}])")
    assert "wirebook.catalog.load" in loaded
    assert not {"pyarrow", "numpy", "httpx", "xmlschema", "google.protobuf"} & loaded


def test_a_catalogue_loads_the_libraries_of_no_format_that_it_does_not_name() -> None:
    loaded = loaded_by("from wirebook import Catalog; Catalog.load({'specversion': '1.0-rc4', 'messagegroups': {}})")
    assert "wirebook.schema.compile" in loaded
    assert not {"httpx", "xmlschema", "jsonschema_rs"} & loaded


@pytest.mark.parametrize("command", ["match", "explain"])
@pytest.mark.parametrize("pack", ["plain", "gzip", "whole"])
def test_matching_ten_lines_loads_neither_pandas_nor_spark(command: str, pack: str, tmp_path: Path) -> None:
    lines = (EXAMPLES / "captures" / "kafka.jsonl").read_bytes() * 3
    whole = json.dumps(json.loads(lines.splitlines()[0]), indent=1).encode()
    data = {"plain": lines, "gzip": gzip.compress(lines), "whole": whole}[pack]
    (tmp_path / "ten").write_bytes(data)
    arguments = [command, str(tmp_path / "ten"), "--catalog", str(EXAMPLES / "bikes.xreg.json")]
    loaded = loaded_by(f"from wirebook.cli.app import run; assert run({arguments!r}) == 0")
    assert "wirebook.landing.sources.reading" in loaded
    assert not {"pandas", "pyspark", "httpx", "xmlschema"} & loaded


@pytest.mark.parametrize("lines", [1, 1_000_000])
def test_a_reader_that_goes_away_is_no_fault(lines: int) -> None:
    program = f"""if True:
        import sys, types
        from wirebook.cli import app
        sys.modules["trial"] = module = types.ModuleType("trial")
        module.__spec__ = types.SimpleNamespace(name="trial")
        module.trial = lambda: print(*range({lines}), sep="\\n")
        app.COMMANDS = {{"trial": app.Command("trial", "trial", "")}}
        app.main(["trial"])
    """
    started = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert started.stdout
    assert started.stderr
    started.stdout.close()
    said = started.stderr.read()
    started.stderr.close()
    assert (started.wait(), said) == (141, b"")


@pytest.mark.parametrize(("debug", "said"), [("", False), ("1", True)])
def test_what_libraries_log_is_said_on_request(debug: str, said: bool) -> None:
    program = (
        "import logging, sys; from wirebook.cli import app; app.run = lambda *_: logging.error('a fault'); app.main()"
    )
    environment = os.environ | {"WIREBOOK_DEBUG": debug}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ("a fault" in done.stderr) is said
