"""What local sessions start as Spark's Python daemon: PySpark's own, two things better.

Workers are forks of the daemon. Here it has loaded the libraries they need before it forks, so they do not each. And a
worker whose session ends, or whose output is no longer wanted, is not a fault to print a traceback about (Spark closes
the socket; PySpark's worker then fails to say that its input has ended).
"""

from __future__ import annotations

import socket
from importlib import import_module

from pyspark import daemon

LOADED = tuple(map(import_module, ("numpy", "pandas", "pyarrow", "pyspark.sql.pandas.serializers")))

_worker = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """PySpark's worker; one whose other side has gone ends with code 1."""
    try:
        return int(_worker(sock, authenticated))  # type: ignore[no-untyped-call]
    except (BrokenPipeError, ConnectionResetError):
        return 1


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()  # type: ignore[no-untyped-call]
