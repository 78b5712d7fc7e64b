"""The Python daemon of local Spark sessions: PySpark's own with two changes.

Workers are forks of the daemon. This one loads the libraries that workers need before it forks. A worker whose session
ends, or whose output is no longer read, ends without a traceback (Spark closes the socket, and PySpark's worker then
fails to report the end of its input).
"""

from __future__ import annotations

import socket
from importlib import import_module

from pyspark import daemon

LOADED = tuple(map(import_module, ("numpy", "pandas", "pyarrow", "pyspark.sql.pandas.serializers")))

_worker = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """PySpark's worker; returns 1 if the connection is closed."""
    try:
        return int(_worker(sock, authenticated))  # type: ignore[no-untyped-call]
    except (BrokenPipeError, ConnectionResetError):
        return 1


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()  # type: ignore[no-untyped-call]
