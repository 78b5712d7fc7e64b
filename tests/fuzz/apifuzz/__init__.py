"""Requests to a registry that runs, made at random: what is wrong in them is answered, never a failure of the server.

`byschema` lets schemathesis read the OpenAPI document; `rounds` sends requests of our own, made by `requests` from
`entities`, byte by byte over `wire`. `rules` is what must hold of every answer.
"""
