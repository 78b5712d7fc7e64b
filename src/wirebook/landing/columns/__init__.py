"""The column engine: reads, matches and decodes many messages at once, as Arrow columns and NumPy masks.

There are two engines. The *reference* (`wirebook.bindings`, `wirebook.definitions`, `landing.tables.reference_rows`)
handles one message at a time and defines the result. The column engine handles whole chunks, but returns results only
for rows where it is certain to agree with the reference. All other rows go to the reference. Masks with the name
`doubtful` mark these rows; `sure`, `certain` and `settled` mark rows with a certain result. A column check may
therefore be stricter than the rule that it checks: this costs time, but never changes a result.

A *slot* is a place in a message that a definition can constrain, such as a header or the topic. The data passes through
these modules in turn:

1. `records` (with `json_records` and `parquet_records`): the fields of the records, for each file format.
2. `wire_columns`, `message_columns` and `events`: the slots, attributes and data of the messages.
3. `patterns`, `candidates` and `match`: the definition of each message.
4. `payloads`: the decoded payloads.
5. `rows`: the rows of typed tables.

Dead letters come from `near_misses` (no definition matches) and `invalid_payloads` (the definition is certain).

Spec: docs/semantics.md#one-meaning-two-engines; docs/decisions/0004-column-engine-and-reference.md
"""
