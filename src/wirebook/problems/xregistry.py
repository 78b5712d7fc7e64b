"""The errors of an xRegistry service: what its answers call them, with which status, about what.

A rule of `wirebook.core` raises `refused(...)`; the service turns it into an answer and knows nothing else of it.

Spec: core/spec.md#error-processing; core/http.md#error-processing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["ERRORS", "ErrorType", "Refused", "refused"]

TEXTS: Final = "https://github.com/xregistry/spec/blob/main/core"
PLACEHOLDER: Final = re.compile(r"<([a-z][a-z0-9_]*)>")


@dataclass(frozen=True, slots=True)
class ErrorType:
    """A kind of error. `title` has ``<...>`` for the subject and for each argument; `text` defines it, if any does."""

    name: str
    status: int
    title: str
    text: str | None = "spec.md"

    @property
    def uri(self) -> str:
        return f"{TEXTS}/{self.text}#{self.name}" if self.text else f"urn:wirebook:error:{self.name}"

    @property
    def args(self) -> frozenset[str]:
        return frozenset(PLACEHOLDER.findall(self.title)) - {"subject"}


_TABLE: Final[tuple[tuple[str, int, str], ...]] = (
    ("action_not_supported", 405, "The method <action> is not allowed on <subject>."),
    ("ancestor_circular_reference", 400, "The Versions of <subject> would be each other's ancestors: <list>."),
    (
        "bad_defaultversionid",
        400,
        "The flag setdefaultversionid of <subject> has a bad value (<value>): <error_detail>.",
    ),
    ("bad_details", 400, "There are no $details here: <subject>."),
    ("bad_filter", 400, "The filter of <subject> has a bad expression (<value>): <error_detail>."),
    ("bad_flag", 400, "The flag '<flag>' is not allowed on <subject>."),
    ("bad_ignore", 400, "The flag ignore of <subject> has a bad value (<value>): <error_detail>."),
    ("bad_inline", 400, "The flag inline of <subject> has a bad value (<value>): <error_detail>."),
    ("bad_request", 400, "<error_detail>."),
    ("bad_sort", 400, "The flag sort of <subject> has a bad value (<value>): <error_detail>."),
    ("cannot_doc_xref", 400, "<subject> is a cross-reference: it has no Versions in document view."),
    ("capability_error", 400, "The capabilities are refused: <error_detail>."),
    ("capability_missing_value", 400, "The capability '<name>' must have '<value>'."),
    ("capability_unknown", 400, "There is no capability '<field>'."),
    ("capability_value", 400, "The capability '<field>' cannot have <value>; allowed: <list>."),
    ("capability_wildcard", 400, "The capability '<field>' has '*', and then nothing else is allowed."),
    ("compatibility_unknown", 400, "<subject>: the compatibility '<compat>' is not known for the format '<format>'."),
    ("compatibility_violation", 400, "The Versions of <subject> would break its compatibility rule '<compat>'."),
    ("constraint_failure", 400, "The Versions of <subject> would break its Group's constraint '<kind>' on '<path>'."),
    ("data_retrieval_error", 500, "Not all of the data could be read."),
    ("defaultversionid_request", 400, "No Version of <subject> was made that could become its default."),
    ("extra_xref_attribute", 400, "The <singular> <subject> is a cross-reference, which cannot have '<name>'."),
    ("format_external", 400, "The document of <subject> is elsewhere and cannot be checked."),
    ("format_unknown", 400, "The document of <subject> has the format '<format>', which cannot be checked."),
    ("format_violation", 400, "The document of <subject> breaks its format '<format>'."),
    ("groups_only", 400, "'<name>' is no Group type; nothing else is allowed on <subject>."),
    ("hasdocument_violation", 400, "<subject> has a document, which <plural> would no longer have."),
    ("inline_noninlineable", 400, "'<name>' cannot be inlined on <subject>."),
    ("invalid_attribute", 400, "The attribute '<name>' of <subject> is not valid: <error_detail>."),
    ("malformed_id", 400, "'<id>' is no identifier (<subject>): <error_detail>."),
    ("malformed_xid", 400, "'<xid>' is no XID (<subject>): <error_detail>."),
    ("malformed_xref", 400, "'<xref>' cannot be cross-referenced (<subject>): <error_detail>."),
    ("mismatched_epoch", 400, "The epoch of <subject> is <epoch>, not <bad_epoch>."),
    ("mismatched_id", 400, "The <singular>id of <subject> is '<expected_id>', not '<invalid_id>'."),
    ("mismatched_version_attribute", 400, "The Versions of <subject> must agree on '<name>'."),
    ("misplaced_epoch", 400, "The epoch of <subject> belongs into its meta."),
    ("model_compliance_error", 400, "What the registry holds would not comply with the model."),
    ("model_error", 400, "The model is refused: <error_detail>."),
    ("model_required_true", 400, "The model's attribute '<name>' has a default and must be required."),
    ("model_scalar_default", 400, "The model's attribute '<name>' is no scalar and cannot have a default."),
    ("multiple_roots", 400, "The Versions of <subject> would have several roots, which <plural> cannot have."),
    ("not_available", 400, "<subject> is not available."),
    ("not_found", 404, "There is no <subject>."),
    ("one_resource", 400, "Only one of <list> is allowed: <subject>."),
    ("parsing_data", 400, "The body cannot be read: <error_detail>."),
    ("readonly", 400, "<subject> is read-only."),
    ("required_attribute_missing", 400, "<subject> lacks: <list>."),
    ("resources_only", 400, "'<name>' is no Resource type; nothing else is allowed on <subject>."),
    ("server_busy", 503, "The server is too busy for <subject>; try again later."),
    ("server_error", 500, "The server failed; try again later."),
    ("setdefaultversionsticky_false", 400, "<subject> has one Version at most: its default cannot be sticky."),
    ("sort_noncollection", 400, "Only a collection can be sorted: <subject>."),
    ("too_large", 406, "The answer for <subject> is too large; ask for less at once."),
    ("too_many_versions", 400, "With setdefaultversionid=request only one Version is allowed: <subject>."),
    ("unknown_attribute", 400, "<subject> has no attribute '<name>'."),
    ("unknown_group_type", 400, "There is no Group type '<name>' (<subject>)."),
    ("unknown_id", 400, "<subject>: there is no <singular> with the <singular>id '<id>'."),
    ("unknown_resource_type", 400, "The Group type '<group>' has no Resource type '<name>'."),
    ("unsupported_specversion", 400, "The specversion '<specversion>' is not offered; there are: <list>."),
    ("versionid_not_allowed", 400, "<subject>: the versionid of <plural> is chosen by the server."),
)
_HTTP: Final[tuple[tuple[str, int, str], ...]] = (
    ("api_not_found", 404, "There is no such API: <subject>."),
    ("details_required", 405, "PATCH needs $details: <subject>."),
    ("extra_xregistry_header", 400, "The header '<name>' is not allowed on <subject>: <error_detail>."),
    ("header_error", 400, "The header '<name>' of <subject> cannot be read: <error_detail>."),
    ("missing_body", 400, "The request to <subject> needs a body; an empty one is '{}'."),
    ("missing_versions", 400, "The request to <subject> needs at least one Version."),
)
ERRORS: Final = {row[0]: ErrorType(*row) for row in _TABLE} | {row[0]: ErrorType(*row, "http.md") for row in _HTTP}


class Refused(Exception):
    """A request that changes nothing and why. `arguments` are the texts of the title's placeholders."""

    def __init__(self, type_: ErrorType, subject: str | None, args: dict[str, str], detail: str | None) -> None:
        self.type, self.subject, self.arguments, self.detail = type_, subject, args, detail
        super().__init__(self.title)

    @property
    def title(self) -> str:
        texts = self.arguments | {"subject": self.subject or ""}
        return PLACEHOLDER.sub(lambda found: texts[found[1]], self.type.title)

    def to_dict(self) -> dict[str, Any]:
        """The body of the answer."""
        body: dict[str, Any] = {"type": self.type.uri, "title": self.title}
        if self.detail:
            body["detail"] = self.detail
        if self.subject:
            body["subject"] = self.subject
        if self.arguments:
            body["args"] = dict(sorted(self.arguments.items()))
        return body


def refused(name: str, subject: str | None = None, /, *, detail: str | None = None, **args: object) -> Refused:
    """The error `name`, to be raised. Shape: `args` has a text for each placeholder of the title, and no other."""
    type_ = ERRORS[name]
    if args.keys() != type_.args:
        raise KeyError(f"'{name}' takes {sorted(type_.args)}, not {sorted(args)}")
    return Refused(type_, subject, {key: str(value) for key, value in args.items()}, detail)
