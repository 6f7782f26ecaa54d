"""Identifiers in paths: what each may be, and what a path with another one answers.

A malformed identifier answers as one that is not in use: 404,
and only to callers that may ask. Only the characters of a principal that
many clients escape are percent-decoded.
"""

import re

import msgspec

from frontend.errors import GateError

_ESCAPED = re.compile(r"%(3[Aa]|40|2[Aa])")


class Identifier(msgspec.Struct, frozen=True):
    """One kind. `code` is the error of a path whose identifier names nothing."""

    code: str
    description: str
    example: str
    pattern: str = r"[A-Za-z0-9][A-Za-z0-9._-]{0,255}"
    is_principal: bool = False

    def read(self, segment: str) -> str:
        """The identifier that a raw segment of a path holds. Raises GateError with `code`."""
        if self.is_principal:
            segment = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), segment)
        if _FORMS[self.pattern].fullmatch(segment) is None:
            raise GateError(self.code)
        return segment


IDENTIFIERS = {
    "action_id": Identifier("action_not_found", "Id of an action.", "text_digest"),
    "approval_id": Identifier(
        "approval_not_found", "Id of an approval, as 202 of execute gave it.",
        "apr_01980f2e-4c1b-7d3a-9c55-0f6f7f0a1b2c",
    ),
    "receipt_id": Identifier(
        "receipt_not_found", "Id of a receipt, as the execution result gave it.",
        "rcpt_01980f2e-4c1b-7d3a-9c55-0f6f7f0a1b2c",
    ),
    "intent_id": Identifier(
        "intent_not_found", "Id of an execution intent, as the list of unresolved ones gave it.",
        "intent_01980f2e-4c1b-7d3a-9c55-0f6f7f0a1b2c",
    ),
    "session_id": Identifier(
        "session_not_found", "Id of a session, as its lease and the list of sessions have it.",
        "ses_01980f2e-4c1b-7d3a-9c55-0f6f7f0a1b2c",
    ),
    "standing_id": Identifier(
        "standing_not_found", "Id of a standing approval, as the list of them has it.",
        "sta_01980f2e-4c1b-7d3a-9c55-0f6f7f0a1b2c",
    ),
    "endpoint": Identifier("webhook_not_found", "Name of an endpoint that is notified.", "chat"),
    "principal": Identifier(
        "principal_not_found", "Name of a principal, or `*`; `:`, `@` and `*` may be escaped.", "dev:anonymous",
        pattern=r"\*|[A-Za-z0-9][A-Za-z0-9._:@-]{0,255}", is_principal=True,
    ),
}  # fmt: skip
"""By the name that a path gives its segment (docs/decisions/clients.md, "The interface")."""

_FORMS = {one.pattern: re.compile(one.pattern) for one in IDENTIFIERS.values()}
