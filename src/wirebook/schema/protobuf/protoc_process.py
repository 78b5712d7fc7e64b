"""The protoc process: reads requests as lines of JSON, compiles them one by one, and writes exit codes.

protoc.py starts this file as a script: importing the package would take ten times as long.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path

MEMORY = 2 * 1024**3  # bytes of address space
OUTPUT, ERRORS, INCLUDED = "descriptors.bin", "errors.txt", "_proto"


def serve() -> None:
    """Process requests until the input ends. The output of protoc goes to a file in the folder of the request."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(ImportError, ValueError, OSError):  # not every system has resource limits
        import resource  # noqa: PLC0415

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for line in sys.stdin:
        request = json.loads(line)
        answers.write(f"{run(Path(request['folder']), request['root'])}\n")
        answers.flush()


def run(folder: Path, root: str) -> int:
    """Compile the file `root` in a folder and return the exit code of protoc."""
    import grpc_tools  # noqa: PLC0415  (if the package is missing, only the request fails)
    from grpc_tools import protoc  # noqa: PLC0415

    errors = os.open(folder / ERRORS, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(errors, 2)
    os.close(errors)
    included = Path(grpc_tools.__file__).parent / INCLUDED
    options = ["--include_imports", "--include_source_info", f"--descriptor_set_out={folder / OUTPUT}"]
    return int(protoc.main(["protoc", f"-I{folder / 'files'}", f"-I{included}", *options, root]))


if __name__ == "__main__":
    serve()
