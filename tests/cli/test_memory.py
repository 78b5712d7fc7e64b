"""The allocator of the driver of commands that run until they are stopped."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os
from wirebook.cli.app import load_command
load_command("{command}")
import pyarrow as pa
print(pa.default_memory_pool().backend_name, os.environ.get("ARROW_DEFAULT_MEMORY_POOL"))
"""


@pytest.mark.parametrize(
    ("command", "variables", "expected"),
    [
        ("stream", {}, "system None"),
        ("stream", {"ARROW_DEFAULT_MEMORY_POOL": "jemalloc"}, "jemalloc jemalloc"),
        ("report", {}, "mimalloc None"),
    ],
)
def test_driver_of_a_stream_uses_the_allocator_of_the_system(
    command: str, variables: dict[str, str], expected: str
) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"}
    program = [sys.executable, "-c", PROGRAM.format(command=command)]
    run = subprocess.run(program, env=environment | variables, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == expected
