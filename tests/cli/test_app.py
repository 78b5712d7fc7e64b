"""The command line as a whole: the list of commands, errors and exit codes, imports."""

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
def test_result_of_a_command_is_the_exit_code(command: Any, result: int | None, code: int) -> None:
    command(lambda: result)
    assert app.run(["trial"]) == code


@pytest.mark.parametrize(
    ("error", "code", "text"),
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
def test_error_is_printed_in_one_line_with_its_exit_code(
    command: Any, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, text: str
) -> None:
    command(raising(error))
    assert app.run(["trial"]) == code
    assert capsys.readouterr().err == text


def test_traceback_is_printed_with_wirebook_debug(
    command: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WIREBOOK_DEBUG", "1")
    command(raising(ValueError("one")))
    assert app.run(["trial"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_invalid_command_line_exits_with_2(command: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def trial(to: Annotated[str, typer.Option()]) -> None:
        print(to)

    command(trial)
    assert [app.run(line) for line in (["trial"], ["trial", "--tO", "x"], ["tril"], [])] == [2, 2, 2, 2]
    output = capsys.readouterr()
    assert output.out == ""
    assert "wirebook trial: Missing option '--to'" in output.err
    assert "No such command 'tril'. Did you mean 'trial'?" in output.err


def test_help_lists_existing_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["--help"]) == 0
    listing = capsys.readouterr().out
    for name in app.COMMANDS:
        assert f"\n  {name} " in listing


@pytest.mark.parametrize("name", app.COMMANDS)
def test_help_of_every_command_is_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: wirebook {name}")


def loaded_by(program: str) -> set[str]:
    """The modules that are there after a program of Python, in a process of its own."""
    script = f"import sys; {program}; print(*sys.modules, file=sys.stderr)"
    return set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stderr.split()
    )


def test_help_imports_no_large_library() -> None:
    loaded = loaded_by("from wirebook.cli.app import run; run(['--help'])")
    assert not {"pyspark", "pyarrow", "polars", "pandas", "numpy", "httpx", "rich.table"} & loaded


def test_server_imports_no_landing_library() -> None:
    assert not {"pyspark", "pyarrow", "pandas", "numpy"} & loaded_by("import wirebook.httpapi.server")


@pytest.mark.parametrize("command", ["fmt --check", "upgrade"])
def test_document_commands_import_no_message_library(command: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"specversion": "1.0-rc4", "messagegroups": {"a": {"messagegroupid": "a"}}}')
    loaded = loaded_by(f"from wirebook.cli.app import run; run([*{command.split()}, {str(tmp_path / 'a.json')!r}])")
    assert "wirebook.catalog.load" in loaded
    assert not {"pyarrow", "numpy", "httpx", "xmlschema", "google.protobuf"} & loaded


def test_catalogue_imports_only_libraries_of_its_formats() -> None:
    loaded = loaded_by("from wirebook import Catalog; Catalog.load({'specversion': '1.0-rc4', 'messagegroups': {}})")
    assert "wirebook.schema.compile" in loaded
    assert not {"httpx", "xmlschema", "jsonschema_rs"} & loaded


@pytest.mark.parametrize("command", ["match", "explain"])
@pytest.mark.parametrize("pack", ["plain", "gzip", "whole"])
def test_matching_ten_lines_imports_neither_pandas_nor_spark(command: str, pack: str, tmp_path: Path) -> None:
    lines = (EXAMPLES / "captures" / "kafka.jsonl").read_bytes() * 3
    whole = json.dumps(json.loads(lines.splitlines()[0]), indent=1).encode()
    data = {"plain": lines, "gzip": gzip.compress(lines), "whole": whole}[pack]
    (tmp_path / "ten").write_bytes(data)
    arguments = [command, str(tmp_path / "ten"), "--catalog", str(EXAMPLES / "bikes.xreg.json")]
    loaded = loaded_by(f"from wirebook.cli.app import run; assert run({arguments!r}) == 0")
    assert "wirebook.landing.sources.reading" in loaded
    assert not {"pandas", "pyspark", "httpx", "xmlschema"} & loaded


@pytest.mark.parametrize("lines", [1, 1_000_000])
def test_closed_standard_output_ends_the_command_silently(lines: int) -> None:
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
    errors = started.stderr.read()
    started.stderr.close()
    assert (started.wait(), errors) == (141, b"")


@pytest.mark.parametrize(("debug", "is_logged"), [("", False), ("1", True)])
def test_logs_of_libraries_are_printed_with_wirebook_debug(debug: str, is_logged: bool) -> None:
    program = (
        "import logging, sys; from wirebook.cli import app; app.run = lambda *_: logging.error('a fault'); app.main()"
    )
    environment = os.environ | {"WIREBOOK_DEBUG": debug}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ("a fault" in done.stderr) is is_logged
