"""Fuzzing: random input of every kind, generated from a seed, and the rules that hold for any input.

A case ends with an answer: values, or a `WirebookError` with problems. It raises nothing else, it ends within its bounds
of time and memory, and asked again it says the same. `kinds` has what is fuzzed, `worker` runs cases in a process of its
own, `supervisor` watches that process, `shrinking` makes a failing input small.
"""
