"""Runs: plan, tasks, checks, commits, replay, and the ledger of what has landed.

To follow a run, read in this order:

- `land`, `land_frame` and `replay`: the three kinds of runs
- `open_run`: what each of them begins with; `run`: what is true for all of its batches
- `running_batch`: pin, run as tasks, check, commit; `file_batches`: what is special about files
- `jobs` and `task`: what tasks get and what they do; `engine`: what becomes of a chunk of records
- `target` and `manifests`: what is on disk; `history` and `ledger`: what all batches say together
"""
