"""Compiles Protobuf files to descriptors with protoc.

protoc runs in a process of its own, so that a file that crashes or blocks it affects no other schema. The process
starts with the first schema and is reused. Cost: 60 ms for the first schema, 1 ms for each further one. Imports
resolve only to the files of the request and the well-known types.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import DecodeError

from wirebook.schema.protobuf import protoc_process

TIMEOUT = 20
"""The most time that protoc may take for one schema. Units: seconds."""
MAX_LINES = 5
"""The most lines of protoc's error output that are reported."""
_NOT_AN_ERROR = re.compile(r"\bwarning:|^[IW][0-9]{4} ", re.IGNORECASE)


class ProtocError(ValueError):
    """A Protobuf file cannot be compiled; the message is that of protoc where it reports one."""


def compile_files(files: Mapping[str, str], root: str) -> FileDescriptorSet:
    """Return the descriptors of `root`, one of `files` (text by path), and of its imports, which come first.

    Raises: ProtocError
    """
    with TemporaryDirectory(prefix="wirebook-protoc-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            for path, text in files.items():
                file = folder / "files" / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8", newline="", errors="surrogatepass")
        except OSError as error:  # a path is too long, or is a folder of another path
            raise ProtocError(f"the imports cannot be written as files: {error.strerror}") from error
        code = PROCESS.run(folder, root)
        if code != 0:
            raise ProtocError(_errors(folder) or f"protoc failed with exit code {code}")
        try:
            return FileDescriptorSet.FromString((folder / protoc_process.OUTPUT).read_bytes())
        except (DecodeError, OSError) as error:
            raise ProtocError(f"protoc wrote no descriptors: {error}") from error


def _errors(folder: Path) -> str:
    try:
        text = (folder / protoc_process.ERRORS).read_text(errors="replace")
    except OSError:
        return ""
    places = text.replace(f"{folder / 'files'}{os.sep}", "").splitlines()
    lines = [line.strip() for line in places if line.strip() and not _NOT_AN_ERROR.search(line)]
    return "; ".join(lines[:MAX_LINES])


class _Process:
    """The protoc process, started on first use. A forked child starts its own."""

    def __init__(self) -> None:
        self.running: subprocess.Popen[str] | None = None
        self._of_parents: list[subprocess.Popen[str] | None] = []
        self._forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)
        atexit.register(self.stop)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._of_parents.append(self.running)  # kept alive: a child must not end the process of its parent
        self.running = None
        self._owner = os.getpid()

    def run(self, folder: Path, root: str) -> int:
        """Run protoc and return its exit code. Raises: ProtocError if it crashes or times out"""
        with self._lock:
            process = self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            timer = threading.Timer(TIMEOUT, process.kill)
            timer.start()
            try:
                process.stdin.write(json.dumps({"folder": str(folder), "root": root}) + "\n")
                process.stdin.flush()
                answer = process.stdout.readline()
            except OSError:
                answer = ""
            finally:
                timer.cancel()
            if not answer.endswith("\n"):
                self._end()
                raise ProtocError(f"protoc crashed or took longer than {TIMEOUT} seconds")
            return int(answer)

    def _started(self) -> subprocess.Popen[str]:
        if self.running is not None and self.running.poll() is not None:
            self._end()  # it ended between two requests
        if self.running is None:
            script = str(Path(protoc_process.__file__))
            paths = os.pathsep.join(path for path in sys.path if path)
            self.running = subprocess.Popen(  # noqa: S603  (the same Python and a script of this package)
                [sys.executable, "-P", script],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": paths},
                text=True,
            )
        return self.running

    def _end(self) -> None:
        process, self.running = self.running, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):  # buffered input can no longer be written
                        pipe.close()

    def stop(self) -> None:
        """End the process, unless it belongs to a parent. Called when Python exits."""
        if self._owner == os.getpid():
            self._end()


PROCESS = _Process()
