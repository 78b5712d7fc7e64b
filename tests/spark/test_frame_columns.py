"""The columns of DataFrames on Spark: their types, missing headers, and streaming DataFrames that are matched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.spark.test_land_spark import CATALOGUE, event

pytestmark = pytest.mark.spark

HEADERS = "array(named_struct('key', 'content-type', 'value', cast('application/cloudevents+json' as binary)))"
NAMED = "array(named_struct('name', 'content-type', 'value', 'application/cloudevents+json'))"
TURNED = "array(named_struct('Value', cast('application/cloudevents+json' as binary), 'n', 1, 'Key', 'content-type'))"
TIME = "2026-01-01T00:00:00Z"
KAFKA = {"value": "cast(event as binary)", "topic": "'t'", "headers": HEADERS}
CAPTURE = {"protocol": "'KAFKA'", "topic": "'t'", "value": "event", "headers": NAMED}
READABLE: dict[str, dict[str, str]] = {
    "kafka": KAFKA,
    "text": KAFKA | {"value": "event", "key": "'k'", "headers": NAMED, "timestamp": f"'{TIME}'"},
    "other members": KAFKA | {"headers": TURNED, "partition": "1Y", "offset": "2S", "key": f"timestamp '{TIME}'"},
    "map": KAFKA | {"headers": "map('content-type', cast('application/cloudevents+json' as binary))", "key": "null"},
    "lists": KAFKA | {"headers": "array(array('content-type', 'application/cloudevents+json'))", "partition": "null"},
    "times": KAFKA | {"timestamp": f"timestamp_ntz '{TIME[:-1]}'", "partition": "1", "offset": "2L"},
    "collations": KAFKA | {"value": "event collate UNICODE", "topic": "cast('t' as varchar(3)) collate UTF8_LCASE"},
    "binary topic": KAFKA
    | {"topic": "cast('t' as binary)", "timestamp": "null", "headers": f"if(true, {HEADERS}, null)"},
    "capture": CAPTURE | {"received": f"timestamp '{TIME}'", "endpoint": "null", "qos": "null", "status": "null"},
    "capture, as of Kafka": CAPTURE
    | {"headers": HEADERS, "received": f"'{TIME}'", "protocol": "cast('kafka' as binary)"},
    "http": {"protocol": "'HTTP'", "method": "'POST'", "headers": NAMED, "body": "event", "status": "null"},
    "lines": {"value": "event"},
    "binary lines": {"value": "cast(event as binary)", "offset": "date '2026-01-01'"},
}
"""Columns of which the event that `event` holds is read, as SQL."""
UNREADABLE: dict[str, tuple[dict[str, str], str, str]] = {
    "topic": (KAFKA | {"topic": "1"}, "topic", "int"),
    "headers": (KAFKA | {"headers": "'h'"}, "headers", "string"),
    "header values": (KAFKA | {"headers": "map('h', 1)"}, "headers", "map<string,int>"),
    "value": (KAFKA | {"value": "1"}, "value", "int"),
    "offset": (KAFKA | {"offset": "'1'"}, "offset", "string"),
    "timestamp": (KAFKA | {"timestamp": "1767225600000L"}, "timestamp", "bigint"),
    "lines": ({"value": "named_struct('a', 1)"}, "value", "struct<a:int>"),
    "variant": ({"value": "parse_json(event)"}, "value", "variant"),
    "capture": (CAPTURE | {"headers": "'h'"}, "headers", "string"),
    "objects": (CAPTURE | {"properties": "named_struct('a', 1)"}, "properties", "struct<a:int>"),
}

CODES = ("frame-columns", "frame-columns", "bad-setting", "bad-setting")

PROGRAM = """
import json, sys, warnings
from pathlib import Path
from wirebook.problems import WirebookError
from wirebook.spark import land, land_batch, match
from wirebook.spark.session import session

folder, spark = Path(sys.argv[1]), session()
catalogue, plain = str(folder / "catalogue.json"), str(folder / "plain.json")
given = json.loads((folder / "given.json").read_text())
text = json.dumps(given["event"]).replace("'", "\\\\'")
results = {}

def frame(columns, rows=1):
    base = spark.range(rows).selectExpr("id", f"'{text}' as event")
    return base.selectExpr(*(f"{expression} as {name}" for name, expression in columns.items()))

def failure(call):
    try:
        call()
    except WirebookError as error:
        return [[problem.code, problem.message] for problem in error.problems]

def warned(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # sockets of Spark
        result = call()
    return [[str(warning.message), warning.filename] for warning in caught], result

results["readable"] = {name: [row["outcome"] for row in match(frame(columns), catalogue).select("outcome").collect()]
                       for name, columns in given["readable"].items()}
results["unreadable"] = {name: failure(lambda: match(frame(columns), catalogue))
                         for name, (columns, *_) in given["unreadable"].items()}
kafka, to = given["readable"]["kafka"] | {"partition": "0", "offset": "id"}, folder / "refused"
wrong = frame(kafka | {"topic": "1", "headers": "'h'"})
stream = spark.readStream.format("rate").load().selectExpr("value", "1 as topic")
results["refused"] = [failure(call) for call in (
    lambda: land(wrong, catalogue, to), lambda: land_batch(wrong, 1, catalogue, to, query="q"),
    lambda: land(stream, catalogue, to), lambda: match(stream, catalogue))]
results["begun"] = to.exists()
results["twice"] = failure(lambda: match(frame(kafka).select("value", "topic", "topic"), catalogue))

lines = {"value": "event"}
months = lines | {"months": "make_interval(1)", "list": "array(interval '1' year)", "days": "interval '1' day"}
results["intervals"] = failure(lambda: match(frame(months), catalogue))
results["same names"] = failure(lambda: match(frame(lines | {"x": "1", "X": "2"}), catalogue))
carried = frame(months | {name: f"cast({months[name]} as string)" for name in ("months", "list")})
results["carried"] = match(carried, catalogue).select("outcome", "months").collect()

# -- options
def mistake(call):
    try:
        call()
    except (WirebookError, TypeError) as error:
        return str(error)

numbered = frame(lines | {"f": "'f'", "n": "id"})
numbers = spark.readStream.format("rate").load().selectExpr("'{}' as value", "'f' as f", "value as n")
results["mistakes"] = [mistake(call) for call in (
    lambda: land(numbered, catalogue, to, identity="fn"), lambda: land(numbers, catalogue, to, identity=("n",)),
    lambda: land(numbered, catalogue, to, identity=("f", "n"), deduplicate="24h"),
    lambda: land(numbers, catalogue, to, deduplicate=24),
    lambda: land(numbered, catalogue, to, idenity=("f", "n")), lambda: land(numbers, catalogue, to, chekpoint="x"),
    lambda: land_batch(numbered, 1, catalogue, to, query="q", dedup=1))]
results["begun"] |= to.exists()

# -- missing headers
bare = frame({name: expression for name, expression in kafka.items() if name != "headers"}, 3)
bare.write.parquet(str(folder / "bare"))
chosen = {name: name for name in bare.columns}
results["match"] = warned(lambda: match(bare, catalogue))[0]
results["silent"] = [warned(call)[0] for call in (
    lambda: match(bare, catalogue, columns=chosen), lambda: match(bare, plain), lambda: match(frame(kafka), catalogue),
    lambda: match(frame({"value": "event"}), catalogue), lambda: land(bare, plain, folder / "plain"),
    lambda: land(bare, catalogue, folder / "chosen", columns=chosen))]
for name, call in (("land", lambda: land(bare, catalogue, folder / "bare land")),
                   ("land_batch", lambda: land_batch(bare, 1, catalogue, folder / "bare batch", query="q"))):
    issued, report = warned(call)
    results[name] = [issued, [[p.code, str(p.severity)] for p in report.problems], report.dead_lettered]

def land_stream():
    stream = spark.readStream.schema(bare.schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "bare"))
    query = land(stream, catalogue, folder / "bare stream", trigger={"availableNow": True})
    query.awaitTermination()
    return len(query.recentProgress)

results["land stream"], results["batches"] = warned(land_stream)

# -- a missing topic
def without_topic(source):
    return source.selectExpr("cast(key as string)", "value")

texts = frame({"key": "'k'", "value": "event", "topic": "'t'"})
texts.write.parquet(str(folder / "keyed"))
keyed, to = without_topic(texts), folder / "keyed tables"
stream = without_topic(spark.readStream.schema(texts.schema).parquet(str(folder / "keyed")))
trigger = {"availableNow": True}
results["without topic"] = [warned(call)[0] for call in (
    lambda: match(keyed, catalogue), lambda: match(stream, catalogue),
    lambda: land(stream, catalogue, to, name="a", trigger=trigger).awaitTermination())]
issued, report = warned(lambda: land_batch(keyed, 1, catalogue, to, query="q"))
results["without topic"].append(issued)
results["topic problems"] = [str(p.severity) for p in report.problems]
results["lines on purpose"] = [warned(call)[0] for call in (
    lambda: match(keyed, catalogue, columns={"value": "value"}),
    lambda: land_batch(keyed, 2, catalogue, to, query="q", columns={"value": "value"}))]

# -- matching streams
def streamed(source, number, **options):
    matched = match(source, catalogue, **options)
    query = matched.writeStream.format("memory").queryName(f"q{number}").trigger(availableNow=True).start()
    query.awaitTermination()
    return matched.isStreaming, spark.table(f"q{number}")

def rows(frame):
    return sorted(json.dumps(row.asDict(recursive=True), default=str) for row in frame.collect())

messages = spark.read.json(str(folder / "events.jsonl")).selectExpr("id", "to_json(struct(*)) as event")
messages = messages.selectExpr(*(f"{expression} as {name}" for name, expression in given["readable"]["kafka"].items()),
                               "cast(id as int) as number")
messages.repartition(4).write.parquet(str(folder / "messages"))
files = spark.readStream.schema(messages.schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "messages"))
is_streaming, table = streamed(files, 1, prefix="w_")
batch = match(messages, catalogue, prefix="w_")
results["streamed"] = [is_streaming, rows(table) == rows(batch), table.columns == batch.columns,
                       {row["w_outcome"]: row["count"] for row in table.groupBy("w_outcome").count().collect()}]
texts = folder / "texts"
texts.mkdir()
(texts / "events.jsonl").write_bytes((folder / "events.jsonl").read_bytes())
_, table = streamed(spark.readStream.text(str(texts)), 2)
results["streamed lines"] = [table.count(), rows(table) == rows(match(spark.read.text(str(texts)), catalogue))]
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, one_java: dict[str, str]) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("columns")
    (folder / "catalogue.json").write_text(json.dumps(CATALOGUE))
    plain = {"messageid": "m", "protocol": "KAFKA", "protocoloptions": {"topic": "t"}}
    group = {"messagegroupid": "g", "messages": {"m": plain}}
    (folder / "plain.json").write_text(json.dumps(CATALOGUE | {"messagegroups": {"g": group}}))
    (folder / "given.json").write_text(json.dumps({"event": event(1), "readable": READABLE, "unreadable": UNREADABLE}))
    events = [*map(event, range(20)), event(20, "other")]
    (folder / "events.jsonl").write_text("".join(json.dumps(item) + "\n" for item in events))
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    done = subprocess.run(command, env=os.environ | one_java, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_columns_of_readable_types_match(results: dict[str, Any]) -> None:
    assert results["readable"] == {name: ["matched"] for name in READABLE}


def test_columns_of_other_types_are_refused_before_anything_runs(results: dict[str, Any]) -> None:
    for name, (_, column, type_) in UNREADABLE.items():
        ((code, message),) = results["unreadable"][name]
        assert code == "frame-columns"
        assert message.startswith(f"column '{column}' has the type {type_}; allowed: ")


def test_every_function_for_frames_checks_the_types(results: dict[str, Any]) -> None:
    topic = ["frame-columns", "column 'topic' has the type int; allowed: string or binary"]
    *landed, stream, matched = results["refused"]
    assert [[problems[1], len(problems)] for problems in landed] == [[topic, 2]] * 2
    value = ["frame-columns", "column 'value' has the type bigint; allowed: binary or string"]
    assert stream == matched == [value, topic]
    assert not results["begun"]


def test_columns_of_one_name_are_refused(results: dict[str, Any]) -> None:
    assert results["twice"] == [["frame-columns", "the DataFrame has several columns of the name 'topic'"]]


def test_columns_that_spark_cannot_pass_to_python_are_refused(results: dict[str, Any]) -> None:
    cannot = "which Spark cannot pass to Python"
    assert results["intervals"] == [
        ["frame-columns", f"column 'months' has the type interval, {cannot}"],
        ["frame-columns", f"column 'list' has the type array<interval year>, {cannot}"],
    ]
    message = f"the DataFrame has several columns of one name, {cannot}: ['x', 'X']"
    assert results["same names"] == [["frame-columns", message]]
    assert results["carried"] == [["matched", "1 years"]]


def test_wrong_options_are_named_before_anything_runs(results: dict[str, Any]) -> None:
    *problems, identity, checkpoint, window = results["mistakes"]
    assert [text.partition(":")[0] for text in problems] == [*CODES]
    assert "must be a timedelta; got '24h'" in problems[2]
    assert identity == "unknown option 'idenity'; did you mean 'identity'?"
    assert checkpoint == "unknown option 'chekpoint'; did you mean 'checkpoint'?"
    assert window == "unknown option 'dedup'; did you mean 'deduplicate'?"
    assert not results["begun"]


def test_missing_headers_are_a_warning_at_the_call(results: dict[str, Any]) -> None:
    ((message, file),) = results["match"]
    assert file == "<string>"
    assert "no 'headers'" in message
    assert "[missing-headers]; read the topic with .option('includeHeaders', 'true')" in message
    assert results["silent"] == [[]] * 6
    for name in ("land", "land_batch"):
        issued, problems, dead = results[name]
        assert issued == results["match"]
        assert (problems, dead) == ([["missing-headers", "warning"]], 3)


def test_missing_headers_of_a_stream_are_one_warning(results: dict[str, Any]) -> None:
    assert results["land stream"] == results["match"]
    assert results["batches"] > 1


def test_missing_topic_is_a_warning_of_every_function(results: dict[str, Any]) -> None:
    for issued in results["without topic"]:
        ((message, file),) = issued
        assert file == "<string>"
        assert "the columns 'value' and 'key', but no 'topic'" in message
        assert "[missing-topic]" in message
        assert "to read lines, map the column, as in columns={'value': 'value'}" in message
    assert results["topic problems"] == ["warning"]
    assert results["lines on purpose"] == [[], []]


def test_streaming_frame_matches_as_the_same_rows_of_a_batch(results: dict[str, Any]) -> None:
    assert results["streamed"] == [True, True, True, {"matched": 20, "unexpected": 1}]
    assert results["streamed lines"] == [21, True]
