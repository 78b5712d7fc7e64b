"""Runs: plan, tasks, checks, commits, replay, and the ledger of what has landed."""
