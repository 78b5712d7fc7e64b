"""Random requests to a running registry: invalid ones are answered with an error, never with a server failure.

`byschema` lets schemathesis read the OpenAPI document; `rounds` sends requests of our own, made by `requests` from
`entities`, byte by byte over `wire`. `rules` is what must hold of every answer.
"""
