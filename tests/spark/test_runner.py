"""Failures of Spark become one problem that names the cause, whatever PySpark and py4j raise."""

from __future__ import annotations

from typing import Any

import pytest

from wirebook.landing.runs.task import Job
from wirebook.problems import WirebookError
from wirebook.spark.runner import SparkRunner

JAVA = "its Java process ended or cannot be reached"
WORKER = """Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times: org.apache.spark.SparkException: \
Python worker exited unexpectedly (crashed). Consider setting 'spark.python.worker.faulthandler.enabled'
\tat org.apache.spark.api.python.BasePythonRunner"""
PYTHON = """An exception was thrown from the Python worker.
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "x.py", line 1, in <module>
ZeroDivisionError: division by zero

\tat org.apache.spark.api"""


class Session:
    """A session whose jobs all end the same way."""

    def __init__(self, end: Exception) -> None:
        self.end = end

    def range(self, *_: int) -> Session:
        return self

    def mapInArrow(self, *_: Any) -> Session:
        return self

    def toArrow(self) -> Any:
        raise self.end


def failure(start: Any) -> str:
    with pytest.raises(WirebookError) as caught:
        SparkRunner(start)(Job(lambda *_: None, b"", {}), [[]])  # type: ignore[arg-type,return-value]
    (problem,) = caught.value.problems
    assert problem.code == "spark-failed"
    return problem.message.removeprefix("Spark stopped: ")


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (ConnectionRefusedError(111, "Connection refused"), JAVA),
        (RuntimeError("Answer from Java side is empty"), JAVA),
        (RuntimeError("Error while sending or receiving"), JAVA),
        (EOFError(), JAVA),
        (RuntimeError("An error occurred while calling o124.getResult"), JAVA),
        (RuntimeError("An error occurred while calling o1.getResult.\n: java.lang.RuntimeException: x"), "x"),
        (RuntimeError(WORKER), "a Python worker ended unexpectedly; it was killed or ran out of memory"),
        (RuntimeError(PYTHON), "ZeroDivisionError: division by zero"),
        (RuntimeError("o1.x.\n: org.apache.spark.SparkException: Job 0 cancelled\n\tat a.b"), "Job 0 cancelled"),
        (RuntimeError("[STREAM_FAILED] Query [id = 1] terminated with exception: no SQLSTATE: XXKST\n==="), "no"),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_spark_failure_names_the_cause(end: Any, said: str) -> None:
    assert failure(lambda: Session(end)) == said


def test_session_that_does_not_start_is_reported() -> None:
    def start() -> Any:
        raise RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.")

    assert failure(start) == JAVA
