"""Runs the tasks of a batch without Spark: a single task in this process, several tasks in a process each.

python -m wirebook.landing.runs.local_runner    reads a pickled task from standard input and writes its result
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Lock, Thread
from typing import Final

import msgspec

from wirebook.landing.runs.settings import Tasks
from wirebook.landing.runs.task import Job, TaskResult, run_task
from wirebook.problems import Problem, WirebookError

__all__ = ["LocalRunner"]

PARENT_SECONDS: Final = 0.5
"""Interval at which a worker checks that its parent is alive."""
COMMAND = (sys.executable, "-m", "wirebook.landing.runs.local_runner")


class LocalRunner:
    """Runs at most `parallelism` tasks at once; by default one per CPU core."""

    def __init__(self, parallelism: int | None = None) -> None:
        self.parallelism = parallelism or os.cpu_count() or 1

    def __call__(self, job: Job, tasks: Tasks) -> list[TaskResult]:
        if len(tasks) == 1:
            return [run_task(job, tasks[0])]
        inputs = [pickle.dumps((job, splits, number)) for number, splits in enumerate(tasks)]
        workers = _Workers()
        with ThreadPoolExecutor(min(self.parallelism, len(tasks))) as threads:
            try:
                return list(threads.map(workers.run, inputs))
            finally:
                workers.stop()


class _Workers:
    """The worker processes of a batch. When one of them fails, the others are killed."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._is_stopped = False
        self._lock = Lock()

    def run(self, task: bytes) -> TaskResult:
        """Run a task in a process of its own.

        Raises: worker-failed
        """
        pipe = subprocess.PIPE
        with self._lock:
            if self._is_stopped:
                raise InterruptedError
            # A process group of its own, so that Ctrl-C reaches only this process, which may let the worker finish.
            worker = subprocess.Popen(COMMAND, stdin=pipe, stdout=pipe, process_group=0)  # noqa: S603
            self._running.add(worker)
        with worker:
            output, _ = worker.communicate(task)
        with self._lock:
            self._running.remove(worker)
        return _decoded(worker, output)

    def stop(self) -> None:
        """Kill the running workers and start no more."""
        with self._lock:
            self._is_stopped = True
            for worker in self._running:
                worker.kill()


def _decoded(worker: subprocess.Popen[bytes], output: bytes) -> TaskResult:
    """Raises: worker-failed"""
    if worker.returncode:
        message = f"a worker process ended unexpectedly ({_ending(worker.returncode)})"
        hint = "run the command again to continue where it stopped"
        raise WirebookError(Problem("worker-failed", message, hint=hint))
    return msgspec.msgpack.decode(output, type=TaskResult)


def _ending(code: int) -> str:
    return f"exit code {code}" if code > 0 else f"{signal.Signals(-code).name}; it was killed or ran out of memory"


def _end_with_parent(parent: int) -> None:
    """Exit when the parent has exited: nobody waits for the result any more."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os._exit(1)


def main() -> None:
    """Run one task."""
    Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    try:
        job, splits, number = pickle.load(sys.stdin.buffer)  # noqa: S301 (from the process that started this one)
        sys.stdout.buffer.write(msgspec.msgpack.encode(run_task(job, splits, number)))
        sys.stdout.buffer.flush()
    except (EOFError, BrokenPipeError):  # the parent has exited
        os._exit(1)


if __name__ == "__main__":
    main()
