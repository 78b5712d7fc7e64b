"""Protobuf schemas to descriptors, by protoc.

protoc runs in a process of its own, which is started for the first schema and stays for the next ones (60 ms for the
first, 1 ms for each other): a text that brings it down, or keeps it busy, costs that one schema and nothing else. It
sees the files that it is given and the well-known types, nothing else.
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

SECONDS = 20  # for one schema
SHOWN = 5  # lines of what protoc says
_NO_ERROR = re.compile(r"\bwarning:|^[IW][0-9]{4} ", re.IGNORECASE)


class ProtocError(ValueError):
    """Why there are no descriptors, in protoc's words."""


def compile_files(files: Mapping[str, str], root: str) -> FileDescriptorSet:
    """The descriptors of the file `root` of `files` (path to text), and of all that it imports, imports first.

    Raises: ProtocError
    """
    with TemporaryDirectory(prefix="wirebook-protoc-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            _write(folder / "files", files)
        except OSError as error:  # one path leads through another, or is too long
            raise ProtocError(f"the imports cannot be laid out as files: {error.strerror}") from error
        code = _PROCESS.run(folder, root)
        if code != 0:
            raise ProtocError(_errors(folder) or f"protoc ended with {code}")
        try:
            return FileDescriptorSet.FromString((folder / protoc_process.OUTPUT).read_bytes())
        except (DecodeError, OSError) as error:
            raise ProtocError(f"protoc gave no descriptors: {error}") from error


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="", errors="surrogatepass")


def _errors(folder: Path) -> str:
    try:
        text = (folder / protoc_process.ERRORS).read_text(errors="replace")
    except OSError:
        return ""
    places = text.replace(f"{folder / 'files'}{os.sep}", "").splitlines()
    lines = [line.strip() for line in places if line.strip() and not _NO_ERROR.search(line)]
    return "; ".join(lines[:SHOWN])


class _Process:
    """The process, started when it is needed; a forked child gets one of its own."""

    def __init__(self) -> None:
        self._running: subprocess.Popen[str] | None = None
        self._of_parents: list[subprocess.Popen[str] | None] = []
        self._forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)
        atexit.register(self.stop)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._of_parents.append(self._running)  # not ours to end
        self._running = None
        self._owner = os.getpid()

    def run(self, folder: Path, root: str) -> int:
        """protoc's exit code. Raises: ProtocError when it does not come back."""
        with self._lock:
            process = self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            timer = threading.Timer(SECONDS, process.kill)
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
                raise ProtocError(f"protoc stopped without an answer, or took longer than {SECONDS} seconds")
            return int(answer)

    def _started(self) -> subprocess.Popen[str]:
        if self._running is not None and self._running.poll() is not None:
            self._end()  # died between two schemas
        if self._running is None:
            script = str(Path(protoc_process.__file__))
            paths = os.pathsep.join(path for path in sys.path if path)
            self._running = subprocess.Popen(  # noqa: S603  (this very Python, and a script of ours)
                [sys.executable, "-P", script],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": paths},
                text=True,
            )
        return self._running

    def _end(self) -> None:
        process, self._running = self._running, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):  # what was still to be written goes nowhere
                        pipe.close()

    def stop(self) -> None:
        if self._owner == os.getpid():
            self._end()


_PROCESS = _Process()
