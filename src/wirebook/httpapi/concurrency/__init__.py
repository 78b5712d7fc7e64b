"""Threads and batching: the response cache, the read batcher and the commit queue."""
