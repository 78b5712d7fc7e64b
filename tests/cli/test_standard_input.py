"""`-` is standard input for catalogues, captures and payloads."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from wirebook.cli.app import run

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
BIKES = EXAMPLES / "bikes.xreg.json"
CAPTURE = EXAMPLES / "captures" / "kafka.jsonl"
STARTED = "/messagegroups/rides/messages/started"
CONTEXT = ["--set", "city=lund", "--set", "station=17", "--set", "ride=r1"]
JSON = BIKES.read_bytes()
YAML = yaml.safe_dump(json.loads(JSON), sort_keys=False).encode()

Feed = Callable[[bytes], None]


@pytest.fixture
def feed(monkeypatch: pytest.MonkeyPatch) -> Feed:
    def set_input(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return set_input


@pytest.mark.parametrize("document", [JSON, b"\xef\xbb\xbf" + JSON, YAML], ids=["json", "json-bom", "yaml"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["match", str(CAPTURE), "--catalog", "-"],
        ["explain", str(CAPTURE), "--catalog", "-"],
        ["build", STARTED, "--catalog", "-", *CONTEXT, "--data", "bike.json"],
        ["transform", str(CAPTURE), "--catalog", "-", "--to", STARTED],
        ["upgrade", "-"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_catalogue_from_standard_input_is_the_catalogue_of_the_file(
    arguments: list[str],
    document: bytes,
    feed: Feed,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("wirebook.definitions.build.request.current_time", lambda: "2026-01-01T00:00:00Z")
    (tmp_path / "bike.json").write_text('{"bike": 7}')
    (tmp_path / "catalogue.json").write_bytes(JSON)
    feed(document)
    from_input = run(arguments), capsys.readouterr().out
    from_file = (
        run(["catalogue.json" if argument == "-" else argument for argument in arguments]),
        capsys.readouterr().out,
    )
    assert from_input[0] == from_file[0]
    assert from_input[0] in (0, 1)
    if arguments[0] != "build":  # a new id each time
        assert from_input[1] == from_file[1]


@pytest.mark.parametrize("document", [JSON, YAML], ids=["json", "yaml"])
def test_lint_reads_standard_input_and_names_it(
    document: bytes, feed: Feed, capsys: pytest.CaptureFixture[str]
) -> None:
    feed(document.replace(b"CloudEvents/1.0", b"CloudEvents 1.0"))
    assert run(["lint", "-"]) == 1
    assert capsys.readouterr().out.startswith("-:")
    feed(b"{")
    assert run(["lint", "-"]) == 2
    assert capsys.readouterr().err.startswith("-:1:")


@pytest.mark.parametrize(
    "document", [b'{"messagegroups": {}, "specversion": "1.0-rc4"}', b"messagegroups: {}\nspecversion: 1.0-rc4\n"]
)
def test_fmt_writes_standard_input_to_standard_output(
    document: bytes, feed: Feed, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    feed(document)
    assert run(["fmt", "-", "--check"]) == 1
    assert capsys.readouterr().out == ""
    feed(document)
    assert run(["fmt", "-"]) == 0
    ordered = capsys.readouterr().out
    feed(ordered.encode())
    assert run(["fmt", "-", "--check"]) == 0
    (tmp_path / "a.xreg").write_bytes(document)
    assert run(["fmt", str(tmp_path / "a.xreg")]) == 0
    assert (tmp_path / "a.xreg").read_text() == ordered


def test_import_reads_standard_input(feed: Feed, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    feed(YAML)
    assert run(["import", "-", "--database", f"sqlite:///{tmp_path}/registry.db", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changed"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    "arguments",
    [["match", "-", "--json"], ["explain", "-", "--json"], ["transform", "-", "--to", STARTED]],
    ids=lambda arguments: arguments[0],
)
def test_file_type_of_standard_input_is_detected(
    arguments: list[str], pack: Callable[[bytes], bytes], feed: Feed, capsys: pytest.CaptureFixture[str]
) -> None:
    feed(pack(CAPTURE.read_bytes()))
    code = run([*arguments, "--catalog", str(BIKES)])
    from_input = capsys.readouterr().out.replace('"file":"-"', '"file":"kafka.jsonl"')
    assert (
        run([str(CAPTURE) if argument == "-" else argument for argument in arguments] + ["--catalog", str(BIKES)])
        == code
    )
    assert from_input == capsys.readouterr().out
    assert from_input


def test_parquet_from_standard_input_is_read(feed: Feed, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{"protocol": "MQTT/5.0", "topic": "docks/17/3/status", "payload": b"x"}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows")
    feed((tmp_path / "rows").read_bytes())
    assert run(["match", "-", "--catalog", str(BIKES), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["definition"] == "/messagegroups/docks/messages/status"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["match", "-", "--catalog", "-"], "CAPTURE and of --catalog"),
        (["match", str(CAPTURE), "--catalog", "-", "--catalog", "-"], "--catalog and of --catalog"),
        (["explain", "-", "--catalog", "-"], "MESSAGE and of --catalog"),
        (["transform", "-", "--catalog", "-", "--to", STARTED], "CAPTURE and of --catalog"),
        (["build", STARTED, "--catalog", "-", "--data", "-"], "--catalog and of --data"),
        (["build", STARTED, "--catalog", str(BIKES), "--data", "-", "--context", "-"], "--data and of --context"),
        (["land", "-", "--catalog", "-", "--to", "t"], "SOURCE and of --catalog"),
        (["lint", "-", "-"], "SOURCE and of SOURCE"),
        (["fmt", "-", "-"], "FILE and of FILE"),
        (["import", "-", "-", "--database", "sqlite:///x.db"], "FILE and of FILE"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_standard_input_for_two_sources_is_rejected(
    arguments: list[str],
    named: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", None)  # nothing is read
    assert run(arguments) == 2
    err = capsys.readouterr().err
    assert f"standard input can be read only once; '-' is the value of {named}" in err
    assert not list(tmp_path.iterdir())


def test_serve_reads_a_model_from_standard_input(tmp_path: Path) -> None:
    model = {"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}}}}}
    arguments = ["serve", "--port", "0", "--db", f"sqlite:///{tmp_path}/registry.db", "--model", "-"]
    command = [sys.executable, "-c", "from wirebook.cli import main; main()", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(model))
        process.stdin.close()
        url = process.stdout.readline().split()[2]
        with urllib.request.urlopen(f"{url.rstrip('/')}/modelsource") as answer:
            assert list(json.load(answer)["groups"]) == ["dirs"]
        process.terminate()


def test_model_from_standard_input_must_be_an_object(
    feed: Feed, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for text in (b"[]", b"{", b'{"a": 1, "a": 2}'):
        feed(text)
        assert run(["serve", "--port", "0", "--db", f"sqlite:///{tmp_path}/registry.db", "--model", "-"]) == 2
        assert capsys.readouterr().err.startswith("-:1:") or text == b"[]"


def test_land_skips_standard_input_with_the_same_content(tmp_path: Path) -> None:
    arguments = ["land", "-", "--catalog", str(BIKES), "--to", str(tmp_path / "tables"), "--local", "--json"]
    command = [sys.executable, "-c", "from wirebook.cli import main; main()", *arguments]
    read = []
    for data in (CAPTURE.read_bytes(), gzip.compress(b'{"specversion":"1.0"}\n'), CAPTURE.read_bytes()):
        done = subprocess.run(command, input=data, capture_output=True, check=True)
        read.append(json.loads(done.stdout)["read"])
    assert read == [4, 1, 0]


def test_truncated_input_is_an_error_that_warns_of_landing_it_again(tmp_path: Path) -> None:
    whole = gzip.compress(CAPTURE.read_bytes())
    arguments = ["land", "-", "--catalog", str(BIKES), "--to", str(tmp_path / "tables"), "--local", "--no-report"]
    command = [sys.executable, "-c", "from wirebook.cli import main; main()", *arguments]
    for _ in range(2):
        done = subprocess.run(command, input=whole[:-20], capture_output=True, check=False)
        assert done.returncode == 2
        assert b"[truncated-file]; land the complete input into another folder" in done.stderr
