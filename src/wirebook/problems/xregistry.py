"""Rejected requests: `refused` returns the error for an error type of xRegistry, to be raised.

The HTTP service turns the error into a response (`httpapi/http/messages.py`). The command line prints it like any other
`WirebookError`.

Spec: core/spec.md#error-processing; docs/decisions/0191-one-table-of-codes.md.
"""

from __future__ import annotations

from wirebook.problems import CODES, Code, Problem, WirebookError
from wirebook.problems.codes import PLACEHOLDER


class Refused(WirebookError):
    """A request is rejected and changes nothing. Its problem has a code with an HTTP status."""

    @property
    def problem(self) -> Problem:
        """The reason why the request is rejected."""
        return self.problems[0]

    @property
    def type(self) -> Code:
        """The code of the problem: an error type."""
        return CODES[self.problem.code]

    @property
    def title(self) -> str:
        """The title of the error type with its placeholders filled in."""
        return self.problem.message


def refused(name: str, subject: str | None = None, /, *, detail: str | None = None, **args: object) -> Refused:
    """Return the error `name`, to be raised. `args` has a value for each placeholder of the title, and no others.

    Raises: KeyError, if `args` are not those of the title
    """
    code = CODES[name]
    if args.keys() != code.args:
        raise KeyError(f"'{name}' takes {sorted(code.args)}, not {sorted(args)}")
    texts = {key: str(value) for key, value in args.items()}
    filled = texts | {"subject": subject or ""}
    title = PLACEHOLDER.sub(lambda placeholder: filled[placeholder[1]], code.title)
    return Refused(Problem(name, title, xid=subject, args=texts or None, detail=detail))
