"""Generate traffic from catalogues: payloads from schemas, messages from definitions, and faulty messages.

Everything is drawn from a `random.Random`, so a seed names a run. What is made is valid by the texts, not by asking
Wirebook; only the envelope is written by `Catalog.build`, whose answer the matcher must give back.
"""
