"""`wirebook registry`: what only who runs a registry may do.

Spec: docs/registry.md#read-only-resources
"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Action = Literal["readonly"]
State = Literal["on", "off"]


def registry(
    action: Annotated[Action, typer.Argument(metavar="readonly")],  # noqa: ARG001 (there is only one)
    xid: Annotated[str, typer.Argument(metavar="XID", help="The Resource, such as /messagegroups/g/messages/m.")],
    state: Annotated[State, typer.Argument(metavar="on|off")],
    database: Annotated[
        str, typer.Option("--database", "--db", help="sqlite:///FILE, served by nobody, or postgresql://...")
    ],
) -> int:
    """Lock a Resource against clients, or unlock it: they may read it and what is below it, and not write it.

    Exit codes: 0 done, also if it was so already; 2 there is no such Resource, or the database cannot be used.
    """
    from wirebook.httpapi.administration import set_readonly  # noqa: PLC0415 (what serves is not needed by others)

    is_on = state == "on"
    was_changed = set_readonly(database, xid, is_on=is_on)
    told = "is now" if was_changed else "was already"
    print(f"{xid} {told} {'read-only' if is_on else 'writable'}")
    return 0
