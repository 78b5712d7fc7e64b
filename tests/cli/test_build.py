"""`wirebook build`: its output, and the commands it prints, run by a POSIX shell."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from wirebook.bindings import Base64, HttpMessage, KafkaRecord, Mqtt3Publish, Mqtt5Publish, NatsMessage, from_bytes
from wirebook.bindings.wire import AnyMessage, MqttProperties
from wirebook.cli.app import run
from wirebook.cli.senders import command_of
from wirebook.cli.wiretext import wire_text

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
BIKES = ["--catalog", str(EXAMPLES / "bikes.xreg.json")]
STARTED = "/messagegroups/rides/messages/started"
RIDE = ["--set", "city=lund", "--set", "station=17", "--set", "ride=r1", "--attribute", "id=1"]
RIDE += ["--attribute", "time=2026-01-05T08:00:00Z"]

NASTY = 'it\'s "$HOME" `id` \\ %s %% \n\t* ~ ; & | > # é 😀 !'
BODIES = [
    b"",
    b"plain",
    NASTY.encode(),
    b"\x00\xff\x01\\%'\n",
    bytes(range(256)) * 2,
    "ü\n".encode(),
    b"-n",
    b"-n\x00",
    b"\x1b[31m",
]


# -- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "data.json"
    path.write_text('{ "bike": 7 }')
    return str(path)


def build(*arguments: str) -> int:
    return run(["build", *arguments])


def test_message_is_printed_as_readable_text(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert build(STARTED, *BIKES, *RIDE, "--data", data) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[:4] == ["KAFKA", "topic: rides", "key: r1", "headers:"]
    assert "  ce_source: /cities/lund/stations/17" in out.splitlines()
    assert out.endswith('\n\n{"bike":7}\n')
    assert err == ""


def test_capture_line_matches_its_definition(data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert build(STARTED, *BIKES, *RIDE, "--data", data, "--as", "capture") == 0
    capture = tmp_path / "built.jsonl"
    capture.write_text(capsys.readouterr().out)
    assert run(["match", str(capture), *BIKES, "--json"]) == 0
    outcome = json.loads(capsys.readouterr().out)
    assert (outcome["outcome"], outcome["definition"]) == ("matched", STARTED)
    assert outcome["bindings"] == {"city": "lund", "station": "17", "ride": "r1"}


def test_payload_from_standard_input_is_printed_as_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"bike": 7}')))
    assert build(STARTED, *BIKES, *RIDE, "--data", "-", "--json", "--as", "kcat") == 0
    output = json.loads(capsys.readouterr().out)
    assert output["definition"] == STARTED
    assert output["message"]["value"] == '{"bike":7}'
    assert "kcat -P" in output["command"]
    assert output["problems"] == []


def test_all_problems_are_reported_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.json").write_text('{"battery": 2}')
    options = ["--set", "city=lund", "--attribute", "type=other", "--property", "nonsense=1"]
    assert build(STARTED, *BIKES, *options, "--data", str(tmp_path / "bad.json"), "--json") == 2
    out, err = capsys.readouterr()
    output = json.loads(out)
    assert (output["message"], output["command"]) == (None, None)
    codes = [problem["code"] for problem in output["problems"]]
    assert codes.count("missing-context") == 2
    assert codes.count("payload-invalid") == 2
    assert {"constant-override", "unknown-slot"} <= set(codes)
    assert len(err.splitlines()) == len(codes)


def test_protocol_and_mode_options_are_applied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.json").write_text(
        json.dumps(
            {"messagegroups": {"g": {"messages": {"m": {"envelope": "CloudEvents/1.0", "envelopemetadata": {}}}}}}
        )
    )
    seen = {}
    for protocol in ("http", "kafka", "mqtt3", "mqtt5", "amqp", "nats"):
        arguments = ["/messagegroups/g/messages/m", "--catalog", str(tmp_path / "c.json"), "--for", protocol]
        assert build(*arguments, "--attribute", "source=/s", "--mode", "structured", "--as", "capture") == 0
        out, err = capsys.readouterr()
        seen[protocol] = json.loads(out)["protocol"]
        assert err.startswith("envelopemetadata.type: info:")
    assert seen == {
        "http": "HTTP",
        "kafka": "KAFKA",
        "mqtt3": "MQTT/3.1.1",
        "mqtt5": "MQTT/5.0",
        "amqp": "AMQP/1.0",
        "nats": "NATS",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([STARTED, *BIKES, "--set", "city"], "'city' is not of the form NAME=VALUE"),
        ([STARTED, *BIKES, "--set", "a=1", "--set", "a=2"], "'a' is set twice"),
        ([STARTED, *BIKES, "--data", "/nowhere/x"], "/nowhere/x: No such file or directory [unreadable-file]"),
        (["/messagegroups/rides/messages/startet", *BIKES], f"did you mean '{STARTED}'?"),
        (["started", *BIKES], f"did you mean '{STARTED}'?"),
        ([STARTED, *BIKES, *RIDE, "--as", "curl"], "curl sends messages of HTTP; this message has the protocol KAFKA"),
        ([STARTED, *BIKES, *RIDE, "--for", "amqp"], "the definition is for KAFKA"),
    ],
)
def test_invalid_options_are_rejected(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert build(*arguments) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert out == ""


# -- commands in a shell ----------------------------------------------------------------------------------------------

STUB = """#!{python}
import base64, json, os, sys
data = "" if sys.stdin.isatty() else base64.b64encode(sys.stdin.buffer.read()).decode()
arguments = [base64.b64encode(os.fsencode(each)).decode() for each in sys.argv[1:]]
print(json.dumps([arguments, data]))
"""


@pytest.fixture
def stubs(tmp_path: Path) -> Path:
    for name in ("curl", "kcat", "mosquitto_pub", "nats"):
        path = tmp_path / name
        path.write_text(STUB.format(python=sys.executable))
        path.chmod(0o755)
    return tmp_path


def run_in_shell(stubs: Path, wire: AnyMessage, program: str, shell: str = "sh") -> tuple[list[str], bytes]:
    """What the program got: its arguments and its standard input."""
    command = command_of(wire, program)
    assert command.problems == []
    environment = {**os.environ, "PATH": f"{stubs}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    script = [shell, "-c", command.shell]
    done = subprocess.run(script, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    arguments, data = json.loads(done.stdout)
    return [decoded(argument).decode() for argument in arguments], decoded(data)


def decoded(text: str) -> bytes:
    return base64.b64decode(text)


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_curl_command_receives_the_message(stubs: Path, body: bytes, shell: str) -> None:
    headers = [("x-a", NASTY.replace("\n", "")), ("x-b", "1"), ("x-b", ""), ("content-type", "a/b")]
    wire = HttpMessage(method="PUT", target="/a%20b/[1]?q={x}&r='", headers=headers, body=from_bytes(body))
    arguments, data = run_in_shell(stubs, wire, "curl", shell)
    assert data == body
    assert option(arguments, "--request") == ["PUT"]
    assert option(arguments, "--header") == [f"{n}: {v}" if v else f"{n};" for n, v in headers]
    assert option(arguments, "--data-binary") == ["@-"]
    assert arguments[-1] == "http://localhost:8080/a%20b/[1]?q={x}&r='"


def option(arguments: list[str], name: str) -> list[str]:
    return [value for option, value in pairwise(arguments) if option == name]


def test_curl_command_adds_no_content_type(stubs: Path) -> None:
    arguments, _ = run_in_shell(stubs, HttpMessage(method="POST", target="/", body="x"), "curl")
    assert option(arguments, "--header") == ["Content-Type:"]
    arguments, data = run_in_shell(stubs, HttpMessage(method="GET", target="http://h/x"), "curl")
    assert (option(arguments, "--data-binary"), arguments[-1], data) == ([], "http://h/x", b"")


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("key", [None, b"", b"k'1", b"\x00\xff\x1f\n"])
@pytest.mark.parametrize("value", [None, *BODIES[:4], b"a\nb\x1f", b"\n"])
def test_kcat_command_receives_key_and_value(stubs: Path, key: bytes | None, value: bytes | None, shell: str) -> None:
    headers: Any = [("h", NASTY), ("none", None), ("e", ""), ("x", "a=b")]
    wire = KafkaRecord(topic="t", partition=2, key=from_bytes(key), headers=headers, value=from_bytes(value))
    if (key, value) in ((None, b""), (b"", None)):
        assert [problem.code for problem in command_of(wire, "kcat").problems] == ["not-expressible"]
        return
    arguments, data = run_in_shell(stubs, wire, "kcat", shell)
    assert option(arguments, "-H") == [f"h={NASTY}", "none", "e=", "x=a=b"]
    assert (option(arguments, "-t"), option(arguments, "-p")) == (["t"], ["2"])
    assert kcat_reads(arguments, data) == (key, value)


def kcat_reads(arguments: list[str], data: bytes) -> tuple[bytes | None, bytes | None]:
    """What kcat makes of its input: lines up to -D, key up to -K, empty is null with -Z; an empty line is nothing."""
    delimiter = {name: bytes([int(option(arguments, name)[0][2:], 16)]) for name in ("-D", "-K") if name in arguments}
    lines = [line for line in data.split(delimiter["-D"]) if line]
    assert len(lines) == 1
    if "-K" not in delimiter:
        return None, lines[0]
    key, _, value = lines[0].partition(delimiter["-K"])
    empty = None if "-Z" in arguments else b""
    return key or empty, value or empty


def test_kcat_without_free_delimiters_is_a_problem() -> None:
    wire = KafkaRecord(topic="t", key="k", value=from_bytes(bytes(range(256))))
    assert [problem.code for problem in command_of(wire, "kcat").problems] == ["not-expressible"]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_mosquitto_pub_command_receives_the_message(stubs: Path, body: bytes) -> None:
    properties = MqttProperties(
        payload_format=0, message_expiry_interval=60, content_type="a/b", correlation_data="c d"
    )
    wire = Mqtt5Publish(
        topic="-t/é'$x",
        qos=1,
        retain=True,
        payload=from_bytes(body),
        properties=properties,
        user_properties=[("u", NASTY), ("u", "2")],
    )
    arguments, data = run_in_shell(stubs, wire, "mosquitto_pub")
    assert data == body
    assert (option(arguments, "-t"), option(arguments, "-V"), option(arguments, "-q")) == (["-t/é'$x"], ["5"], ["1"])
    assert arguments[-1] == ("-s" if body else "-n")
    assert "-r" in arguments
    assert mqtt_options(arguments) == [
        ["payload-format-indicator", "0"],
        ["message-expiry-interval", "60"],
        ["correlation-data", "c d"],
        ["content-type", "a/b"],
        ["user-property", "u", NASTY],
        ["user-property", "u", "2"],
    ]


def mqtt_options(arguments: list[str]) -> list[list[str]]:
    """Return the name and the value after each `-D publish`; two values for user properties."""
    properties = [arguments[n + 2 :] for n, argument in enumerate(arguments) if argument == "-D"]
    return [property_[: 3 if property_[0] == "user-property" else 2] for property_ in properties]


def test_mosquitto_pub_command_uses_the_protocol_version(stubs: Path) -> None:
    arguments, _ = run_in_shell(stubs, Mqtt3Publish(topic="a", payload="x"), "mosquitto_pub")
    assert arguments == ["-h", "localhost", "-p", "1883", "-V", "311", "-t", "a", "-s"]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_nats_command_receives_the_message(stubs: Path, body: bytes) -> None:
    headers = [("X-A", NASTY.replace("\n", "")), ("X-A", "2")]
    wire = NatsMessage(subject="a.$b", reply_to="r", headers=headers, data=from_bytes(body))
    arguments, data = run_in_shell(stubs, wire, "nats")
    assert data == body
    assert arguments[:4] == ["--server", "nats://localhost:4222", "pub", "a.$b"]
    assert option(arguments, "--header") == [f"{name}:{value}" for name, value in headers]
    assert option(arguments, "--reply") == ["r"]
    assert "--no-templates" not in arguments


def test_nats_command_replaces_no_templates(stubs: Path) -> None:
    arguments, _ = run_in_shell(stubs, NatsMessage(subject="a", data="{{Count}}"), "nats")
    assert "--no-templates" in arguments


@pytest.mark.parametrize(
    ("wire", "program", "code", "slot"),
    [
        (HttpMessage(status=200), "curl", "not-expressible", "protocoloptions.status"),
        (HttpMessage(headers=[("x", Base64(b"\xff"))]), "curl", "not-expressible", "protocoloptions.headers.x"),
        (KafkaRecord(value="x"), "kcat", "missing-required", "protocoloptions.topic"),
        (KafkaRecord(topic="t", headers=[("a=b", "1")]), "kcat", "not-expressible", "protocoloptions.headers.a=b"),
        (KafkaRecord(topic="t", headers=[("", "1")]), "kcat", "not-expressible", "protocoloptions.headers."),
        (Mqtt5Publish(), "mosquitto_pub", "missing-required", "protocoloptions.topic_name"),
        (NatsMessage(), "nats", "missing-required", "protocoloptions.subject"),
        (NatsMessage(subject="-h"), "nats", "not-expressible", "protocoloptions.subject"),
        (NatsMessage(subject="a", headers=[("x", "{{ID}}")]), "nats", "not-expressible", "protocoloptions.headers.x"),
        (NatsMessage(subject="a", headers=[("x", " 1")]), "nats", "not-expressible", "protocoloptions.headers.x"),
        (NatsMessage(subject="a"), "kcat", "not-expressible", "protocol"),
    ],
)  # fmt: skip
def test_message_a_program_cannot_send_is_a_problem(wire: AnyMessage, program: str, code: str, slot: str) -> None:
    assert [(problem.code, problem.slot) for problem in command_of(wire, program).problems] == [(code, slot)]


# -- for people -------------------------------------------------------------------------------------------------------


def test_http_message_is_printed_as_sent() -> None:
    wire = HttpMessage(method="POST", target="/x", headers=[("a", "1"), ("b", Base64(b"\xff"))], body="l1\nl2\x1b")
    assert wire_text(wire).split("\n") == ["POST /x HTTP/1.1", "a: 1", "b: /w== (base64)", "", "l1", "l2\\x1b"]
    assert wire_text(HttpMessage(status=204)) == "HTTP/1.1 204"


def test_bytes_and_nulls_are_printed() -> None:
    wire = KafkaRecord(topic="t", key=from_bytes(b"\xff"), headers=[("n", None)], value=from_bytes(b"\xfe"))
    assert wire_text(wire).split("\n") == [
        "KAFKA",
        "topic: t",
        "key: /w== (base64)",
        "headers:",
        "  n: null",
        "",
        "/g== (base64)",
    ]


def test_context_file_fills_placeholders_and_set_overrides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    context = tmp_path / "context.json"
    context.write_text('{"city": "lund", "station": 17, "ride": true}')
    arguments = ["build", "/messagegroups/rides/messages/started", "--catalog", str(EXAMPLES / "bikes.xreg.json")]
    (tmp_path / "data").write_text('{"bike": 7}')
    arguments += ["--data", str(tmp_path / "data"), "--context", str(context), "--json"]
    assert run([*arguments, "--set", "city=oslo"]) == 0
    message = json.loads(capsys.readouterr().out)["message"]
    assert message["key"] == "true"
    assert ["ce_source", "/cities/oslo/stations/17"] in message["headers"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"city": null, "station": "17", "ride": "r"}', "must be a string, a number or a boolean; got null"),
        ("[1]", "a context must be a JSON object of placeholders; got list"),
        ("{", "syntax-error"),
    ],
)
def test_invalid_context_file_is_rejected(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "context.json").write_text(text)
    (tmp_path / "data").write_text('{"bike": 7}')
    arguments = ["build", "/messagegroups/rides/messages/started", "--catalog", str(EXAMPLES / "bikes.xreg.json")]
    assert run([*arguments, "--data", str(tmp_path / "data"), "--context", str(tmp_path / "context.json")]) == 2
    assert message in capsys.readouterr().err
