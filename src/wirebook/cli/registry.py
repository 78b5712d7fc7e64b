"""`wirebook registry`: administer a registry directly in its database, without a server.

Spec: docs/registry.md#read-only-resources; docs/registry.md#default-capabilities
"""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

State = Literal["on", "off"]
DatabaseOption = Annotated[
    str,
    typer.Option(
        "--database", "--db", help="sqlite:///FILE or postgresql://...; a SQLite file must not be in use by a server."
    ),
]

registry = typer.Typer(add_completion=False, help="Administer a registry in its database.", no_args_is_help=True)


@registry.command()
def readonly(
    xid: Annotated[
        str, typer.Argument(metavar="XID", help="XID of the Resource, such as /messagegroups/g/messages/m.")
    ],
    state: Annotated[State, typer.Argument(metavar="on|off")],
    database: DatabaseOption,
) -> int:
    """Make a Resource read-only for clients, or writable again.

    Clients can read a read-only Resource and its Versions, but not write them.

    Exit codes: 0 done, 2 there is no such Resource, or the database cannot be used.
    """
    from wirebook.httpapi.administration import set_readonly  # noqa: PLC0415 (other commands do not need the server)

    is_on = state == "on"
    was_changed = set_readonly(database, xid, is_on=is_on)
    print(f"{xid} {'is now' if was_changed else 'was already'} {'read-only' if is_on else 'writable'}")
    return 0


@registry.command()
def capabilities(
    database: DatabaseOption,
    reset: Annotated[bool, typer.Option("--reset", help="Restore the default capabilities.")] = False,
) -> int:
    """Print the capabilities of a registry as JSON, or restore the default capabilities.

    If a client made the capabilities immutable, only --reset can change them again.

    Exit codes: 0 done, 2 the database cannot be used.
    """
    from wirebook.httpapi.administration import read_capabilities, reset_capabilities  # noqa: PLC0415 (as above)

    if reset:
        changed = reset_capabilities(database)
        print(
            f"capabilities reset: {', '.join(changed)}"
            if changed
            else "the registry already has the default capabilities"
        )
    else:
        print(json.dumps(read_capabilities(database), indent=2))
    return 0
