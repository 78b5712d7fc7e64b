"""`wirebook registry`: changes to a registry that only its operator may make, in its database.

Spec: docs/registry.md#read-only-resources; docs/registry.md#default-capabilities
"""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

State = Literal["on", "off"]
Db = Annotated[
    str,
    typer.Option("--database", "--db", help="sqlite:///FILE, without a server running on it, or postgresql://..."),
]

registry = typer.Typer(
    add_completion=False, help="Change a registry in ways that only its operator may.", no_args_is_help=True
)


@registry.command()
def readonly(
    xid: Annotated[str, typer.Argument(metavar="XID", help="The Resource, such as /messagegroups/g/messages/m.")],
    state: Annotated[State, typer.Argument(metavar="on|off")],
    database: Db,
) -> int:
    """Lock a Resource against clients, or unlock it: clients can read it and what is below it, and cannot write it.

    Exit codes: 0 done, or it was so already; 2 there is no such Resource, or the database cannot be used.
    """
    from wirebook.httpapi.administration import set_readonly  # noqa: PLC0415 (what serves is not needed by others)

    is_on = state == "on"
    was_changed = set_readonly(database, xid, is_on=is_on)
    print(f"{xid} {'is now' if was_changed else 'was already'} {'read-only' if is_on else 'writable'}")
    return 0


@registry.command()
def capabilities(
    database: Db,
    reset: Annotated[bool, typer.Option("--reset", help="Restore the capabilities of a new registry.")] = False,
) -> int:
    """Print the capabilities of a registry as JSON, or restore the default ones.

    A client that makes the capabilities immutable cannot undo that over HTTP; --reset does.

    Exit codes: 0 done, or they were the default ones already; 2 the database cannot be used.
    """
    from wirebook.httpapi.administration import read_capabilities, reset_capabilities  # noqa: PLC0415 (as above)

    if reset:
        changed = reset_capabilities(database)
        print(
            f"capabilities reset: {', '.join(changed)}" if changed else "the capabilities were the default ones already"
        )
    else:
        print(json.dumps(read_capabilities(database), indent=2))
    return 0
