"""Runs: land files or DataFrames in a target, or replay its dead letters, batch by batch.

A batch lands completely or not at all. The driver *pins* the batch (records its input and its catalogue), runs its
tasks, which stage files, checks that no message is lost, and commits the batch by writing its manifest.

To follow a run, read the modules in this order:

- `land`, `land_frame` and `replay`: the three kinds of runs
- `open_run`: the setup that all of them share; `run`: the state that the batches of a run share
- `running_batch`: pin, run tasks, check, commit; `file_batches`: the additional steps for files
- `jobs` and `task`: the input and the work of a task; `engine`: turns a chunk of records into rows
- `target` and `manifests`: the files of a target; `history` and `ledger`: the aggregate of all batches
"""
