"""Watching runs: the figures of each batch, the status of a target, metrics, and events of lineage."""
