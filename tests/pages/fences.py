"""Running the examples of a page of documentation, as a reader would.

A fence is an example when a word behind its language says so:

    ```sh run           run by a shell in a copy of docs/examples, one folder for each page; exit code 0
    ```sh run exit=1    the same, with another exit code
    ```sh run empty     the page begins in an empty folder
    ```sh run ports=80  uses these ports: the whole page is read with free ones in their place
    ```sh run needs=kcat,mosquitto
                        the page is run where these programs are, else skipped
    ```sh run set=NAME  the page is run where this environment variable is set, else skipped
    ```sh run kafka=9092
                        a broker listens at this port: `brokers.py` starts one, or with the word ``apache`` it is Apache
                        Kafka
    ```sh run postgresql=ADDRESS
                        a database is at this address; without PostgreSQL the page is skipped
    ```sh by=.ci/run    not run here: that file has each of its lines
    ```python run       run by Python, there
    ```sql run          run by DuckDB, there
    ```sql run database=FILE
                        the same, in this database
    ```text out         what the fence before prints; ``...`` stands for any text
    ```json file=NAME   written to that file there (any language)

Processes that a fence leaves running in the background are stopped after the page. A fence with the word ``spark``
starts Spark: on the Java process that all pages share, or with the word ``own`` on one of its own.
"""

from __future__ import annotations

import contextlib
import doctest
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
from brokers import free_port

from tests.httpapi.postgres import MISSING, is_installed, running_postgresql
from tests.pages.brokers import kafka_broker

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```(?P<language>\w+)(?P<words>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = 600
SQL = """
import duckdb, sys
connection = duckdb.connect(sys.argv[2])
for statement in duckdb.extract_statements(sys.argv[1]):
    found = connection.sql(statement.query)
    print(found) if found is not None else None
"""


@dataclass(frozen=True)
class Fence:
    language: str
    words: tuple[str, ...]
    body: str
    line: int

    def word(self, name: str, default: str = "") -> str:
        return next((word.partition("=")[2] for word in self.words if word.startswith(f"{name}=")), default)

    def list_of(self, name: str) -> list[str]:
        return [item for item in self.word(name).split(",") if item]


def fences(text: str) -> Iterator[Fence]:
    for fence in FENCE.finditer(text):
        line = text.count("\n", 0, fence.start()) + 1
        yield Fence(fence["language"], tuple(fence["words"].split()), fence["body"], line)


def examples_of(page: Path) -> list[Fence]:
    return [fence for fence in fences(page.read_text()) if is_example(fence)]


def is_example(fence: Fence) -> bool:
    return bool({"run", "out"} & {*fence.words} or fence.word("file"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


# -- a page --------------------------------------------------------------------------------------------------------


def run_examples(page: Path, folder: Path, java: Mapping[str, str] | None = None, apache_kafka: str = "") -> None:
    """Run the examples of a page one after the other; the first that is not as the page says fails.

    `java` are the variables of a shared Java process that runs in `folder`. `apache_kafka` is the address of Apache
    Kafka (host:port).
    """
    examples = examples_of(page)
    require(examples)
    if not any("empty" in fence.words for fence in examples):
        shutil.copytree(DOCS / "examples", folder, dirs_exist_ok=True)
    with contextlib.ExitStack() as stack:
        examples = with_database(with_free_ports(examples, apache_kafka, stack), stack)
        groups: list[int] = []
        stack.callback(end_groups, groups)
        printed = ""
        for fence in examples:
            printed = run_one(fence, folder, printed, f"{name_of(page)}:{fence.line}", groups, java or {})


def run_one(
    fence: Fence, folder: Path, printed: str, where: str, groups: list[int], variables: Mapping[str, str]
) -> str:
    """Do what one fence says. Returns what was printed last."""
    if fence.word("file"):
        target = folder / fence.word("file")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(fence.body)
    elif "out" in fence.words:
        assert_prints(fence.body, printed, where)
    if "run" in fence.words:
        return run_fence(fence, folder, where, groups, variables)
    return printed


def require(examples: list[Fence]) -> None:
    """Skip a page whose programs or settings are not there, and say which."""
    programs = {name for fence in examples for name in fence.list_of("needs")}
    missing = sorted(name for name in programs if not shutil.which(name, path=search_path()))
    if missing:
        pytest.skip(f"needs on the PATH: {', '.join(missing)}")
    unset = sorted({name for fence in examples for name in fence.list_of("set")} - os.environ.keys())
    if unset:
        pytest.skip(f"set {', '.join(unset)} to run this page")


def with_free_ports(examples: list[Fence], apache_kafka: str, stack: contextlib.ExitStack) -> list[Fence]:
    """The examples with ports that nobody uses, and that of a broker which listens, if they ask for one."""
    ports = {port: free_port() for fence in examples for port in fence.list_of("ports")}
    for fence in (fence for fence in examples if fence.word("kafka")):
        is_apache = "apache" in fence.words
        port = int(apache_kafka.rpartition(":")[2]) if is_apache else stack.enter_context(kafka_broker())
        ports[fence.word("kafka")] = port
    if not ports:
        return examples
    pattern = re.compile(r"\b(" + "|".join(ports) + r")\b")
    return [
        Fence(each.language, each.words, pattern.sub(lambda name: str(ports[name[0]]), each.body), each.line)
        for each in examples
    ]


def with_database(examples: list[Fence], stack: contextlib.ExitStack) -> list[Fence]:
    """The examples with the address of a PostgreSQL that runs, if they ask for one."""
    placeholder = next(filter(None, (fence.word("postgresql") for fence in examples)), None)
    if placeholder is None:
        return examples
    if not is_installed():
        pytest.skip(MISSING)
    address = stack.enter_context(running_postgresql())
    return [
        Fence(example.language, example.words, example.body.replace(placeholder, address), example.line)
        for example in examples
    ]


# -- a fence -------------------------------------------------------------------------------------------------------


def run_fence(fence: Fence, folder: Path, where: str, groups: list[int], variables: Mapping[str, str]) -> str:
    """Run it in a process group of its own, which is left to `groups` if it goes on. Returns what it printed so far."""
    settings = {"PATH": search_path(), "COLUMNS": "200", "LC_ALL": "C.UTF-8", "PRE_COMMIT_HOME": f"{folder}/.cache"}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= settings | {**variables}
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command_of(fence),
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=printed,  # a file: a pipe would stay open as long as what runs in the background
            stderr=errors,
            start_new_session=True,
        )
        groups.append(process.pid)
        try:
            code = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            pytest.fail(f"{where}: not done after {SECONDS} seconds")
        if not is_running(process.pid):
            groups.remove(process.pid)
        texts = [whole(printed), whole(errors)]
        assert code == int(fence.word("exit", "0")), f"{where} ends with {code}: {' '.join(texts)}"
        return texts[0]


def whole(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


def command_of(fence: Fence) -> list[str]:
    commands = {
        "sh": ["sh", "-e", "-c", fence.body],
        "python": [sys.executable, "-c", fence.body],
        "sql": [sys.executable, "-c", SQL, fence.body, fence.word("database", ":memory:")],
    }
    return commands[fence.language]


def search_path() -> str:
    """The PATH with the environment's own programs first; servers may be where only root looks."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin"])


def is_running(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def end_groups(groups: list[int]) -> None:
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def assert_prints(expected: str, printed: str, where: str) -> None:
    checker, flags = doctest.OutputChecker(), doctest.ELLIPSIS
    expected, printed = (trimmed(text) for text in (expected, printed))
    assert checker.check_output(expected, printed, flags), f"{where} prints:\n{printed}"


def trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines()) + "\n"
