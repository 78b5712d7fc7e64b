"""Monitoring of runs: the figures of each batch, the status of a target, metrics, and lineage events."""
