"""The runner of documentation examples: different output, different exit codes and missing programs."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest
from brokers import free_port

from tests.pages.fences import run_examples


def run_page(folder: Path, text: str) -> Path:
    """Run the examples of a page with this text; returns the folder they ran in."""
    page, there = folder / "page.md", folder / "there"
    page.write_text(text.replace("~~~", "```"))
    there.mkdir()
    run_examples(page, there)
    return there


SAYS_ONE = "~~~sh run\necho one\n~~~\n\n~~~text out\n{}\n~~~\n"


@pytest.mark.parametrize("output", ["one", "o...", "..."])
def test_output_equal_to_the_page_passes(tmp_path: Path, output: str) -> None:
    run_page(tmp_path, SAYS_ONE.format(output))


@pytest.mark.parametrize("output", ["two", "one\ntwo", "One", "...two", ""])
def test_different_output_fails(tmp_path: Path, output: str) -> None:
    with pytest.raises(AssertionError, match=r"page\.md:5 prints:\none"):
        run_page(tmp_path, SAYS_ONE.format(output))


@pytest.mark.parametrize("command", ["exit 1", "false; true", "no-such-program"])
def test_different_exit_code_fails(tmp_path: Path, command: str) -> None:
    with pytest.raises(AssertionError, match=r"page\.md:1"):
        run_page(tmp_path, f"~~~sh run\n{command}\n~~~\n")


def test_missing_expected_failure_fails(tmp_path: Path) -> None:
    run_page(tmp_path, "~~~sh run exit=3\nexit 3\n~~~\n")
    with pytest.raises(AssertionError):
        run_page(tmp_path / "there", "~~~sh run exit=3\nexit 0\n~~~\n")


def test_page_whose_program_is_missing_is_skipped(tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match="needs on the PATH: no-such-program"):
        run_page(tmp_path, "~~~sh run\nfalse\n~~~\n\n~~~sh run needs=sh,no-such-program\ntrue\n~~~\n")


def test_page_whose_setting_is_missing_is_skipped(tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match="set WIREBOOK_NO_SUCH_SETTING to run"):
        run_page(tmp_path, "~~~sh run set=WIREBOOK_NO_SUCH_SETTING\nfalse\n~~~\n")


def test_files_are_written_and_languages_run(tmp_path: Path) -> None:
    text = "~~~csv file=deep/a.csv\nn\n1\n2\n~~~\n\n~~~sql run\nSELECT sum(n) AS total FROM 'deep/a.csv';\n~~~\n"
    run_page(
        tmp_path, text + "\n~~~text out\n...total...3...\n~~~\n\n~~~python run\nprint(1)\n~~~\n\n~~~text out\n1\n~~~\n"
    )


def test_sql_runs_in_the_named_database(tmp_path: Path) -> None:
    create = "~~~sql run database=a.duckdb\nCREATE TABLE t AS SELECT 41 + 1 AS n;\n~~~\n\n"
    query = "~~~sql run database=a.duckdb\nSELECT n FROM t;\n~~~\n\n~~~text out\n...42...\n~~~\n"
    assert (run_page(tmp_path, create + query) / "a.duckdb").exists()


SERVER = """
import socket
with socket.create_server(("127.0.0.1", 65000)) as server:
    while True:
        server.accept()[0].sendall(b"hello")
"""


CLIENT = """
import socket, time
while True:
    try:
        with socket.create_connection(("127.0.0.1", 65000)) as there:
            print(there.recv(9))
        break
    except OSError:
        time.sleep(0.05)
"""


def test_server_gets_a_free_port_and_is_stopped(tmp_path: Path) -> None:
    start = "python server.py > log 2>&1 &\necho 65000 > port\n"
    there = run_page(
        tmp_path,
        f"~~~python file=server.py{SERVER}~~~\n\n~~~sh run ports=65000\n{start}~~~\n\n"
        f"~~~python run{CLIENT}~~~\n\n~~~text out\nb'hello'\n~~~\n",
    )
    port = int((there / "port").read_text())
    assert port != 65_000
    assert is_free(port)


def is_free(port: int) -> bool:
    """Does nobody listen there, at the latest after some seconds?"""
    for _ in range(50):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return True
        time.sleep(0.1)
    return False


def test_kafka_broker_listens(tmp_path: Path) -> None:
    talk = "from confluent_kafka.admin import AdminClient\n"
    talk += "print(len(AdminClient({'bootstrap.servers': 'localhost:9092'}).list_topics(timeout=20).brokers))\n"
    run_page(tmp_path, f"~~~python run kafka=9092\n{talk}~~~\n\n~~~text out\n1\n~~~\n")


def test_ports_are_free() -> None:
    assert is_free(free_port())
