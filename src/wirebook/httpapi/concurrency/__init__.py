"""Threads and batching: the read batcher, the commit queue, the response cache."""
