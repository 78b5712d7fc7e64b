"""Adapt a program to a Java process that other programs have used. Python imports this module at its start.

Its Spark session is stopped when it ends. Its callbacks have numbers of their own: when Java drops those of an earlier
program, it tells the current one, which would forget its callbacks of the same numbers.
"""

import atexit
import os
import sys

if "PYSPARK_GATEWAY_PORT" in os.environ:
    from py4j.java_gateway import PythonProxyPool

    make_pool = PythonProxyPool.__init__

    def make_numbered_pool(pool: PythonProxyPool) -> None:
        make_pool(pool)
        pool.next_id = os.getpid() << 20

    PythonProxyPool.__init__ = make_numbered_pool


@atexit.register
def stop_spark() -> None:
    if "pyspark" in sys.modules and (context := sys.modules["pyspark"].SparkContext._active_spark_context):
        context.stop()
