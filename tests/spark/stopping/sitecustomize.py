"""Adapt a program to a Java process that other programs have used. Python imports this module at its start.

Its Spark session is stopped when it ends. Its callbacks have numbers of their own: when Java drops those of an earlier
program, it tells the current one, which would forget its callbacks of the same numbers.
"""

import atexit
import os
import sys
from functools import partialmethod

if "PYSPARK_GATEWAY_PORT" in os.environ:
    from py4j.java_gateway import PythonProxyPool

    def _begin_at(pool: PythonProxyPool, number: int) -> None:
        begin(pool)
        pool.next_id = number

    begin = PythonProxyPool.__init__
    PythonProxyPool.__init__ = partialmethod(_begin_at, os.getpid() << 20)


@atexit.register
def stop_spark() -> None:
    if "pyspark" in sys.modules and (context := sys.modules["pyspark"].SparkContext._active_spark_context):
        context.stop()
