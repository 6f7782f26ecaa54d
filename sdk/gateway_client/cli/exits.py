"""Exit codes, and the one table from what went wrong to its code (docs/gatectl.md, "Exit codes")."""

from enum import IntEnum
from pathlib import Path

from gateway_client.errors import (
    ActionFailed,
    AlreadyExecuted,
    ApprovalDenied,
    ApprovalEnded,
    ApprovalPending,
    ApprovalsMissing,
    AuthenticationFailed,
    Conflict,
    Denied,
    GatewayError,
    GatewayFault,
    Invalid,
    NotFound,
    OutcomeUnknown,
    ProtocolViolation,
    RateLimited,
    Unavailable,
    Unreachable,
)


class ScriptExit(IntEnum):
    """Exit codes of gatectl."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    DENIED = 3
    NOT_FOUND = 4
    CONFLICT = 5
    UNAVAILABLE = 6
    RATE_LIMITED = 7
    VERIFICATION_FAILED = 8
    INTERRUPTED = 130


BY_ERROR: dict[type[GatewayError], ScriptExit] = {
    GatewayError: ScriptExit.FAILED,
    Invalid: ScriptExit.USAGE,
    AuthenticationFailed: ScriptExit.DENIED,
    Denied: ScriptExit.DENIED,
    ApprovalDenied: ScriptExit.DENIED,
    ApprovalPending: ScriptExit.DENIED,
    ApprovalsMissing: ScriptExit.DENIED,
    NotFound: ScriptExit.NOT_FOUND,
    Conflict: ScriptExit.CONFLICT,
    ApprovalEnded: ScriptExit.CONFLICT,
    OutcomeUnknown: ScriptExit.CONFLICT,
    AlreadyExecuted: ScriptExit.CONFLICT,
    Unavailable: ScriptExit.UNAVAILABLE,
    Unreachable: ScriptExit.UNAVAILABLE,
    RateLimited: ScriptExit.RATE_LIMITED,
    ActionFailed: ScriptExit.FAILED,
    GatewayFault: ScriptExit.FAILED,
    ProtocolViolation: ScriptExit.FAILED,
}


def exit_of(error: GatewayError) -> ScriptExit:
    """The code of an error; a class that has no row of its own has that of its base."""
    return next(BY_ERROR[kind] for kind in type(error).__mro__ if kind in BY_ERROR)


class Failure(Exception):
    """Something that gatectl itself found wrong: `code` for programs, `message` for people, `mend` what to do next.

    `may_have_run`: a call has run, or may have. Never holds a token, a key, or the content of a key file.
    """

    def __init__(
        self, exit_code: ScriptExit, code: str, message: str, mend: str = "", *, may_have_run: bool = False,
        idempotency_key: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(code)
        self.exit_code = exit_code
        self.code = code
        self.message = message
        self.mend = mend
        self.may_have_run = may_have_run
        self.idempotency_key = idempotency_key


def usage(message: str, mend: str = "") -> Failure:
    """A failure for a wrong command line, or a wrong name in it."""
    return Failure(ScriptExit.USAGE, "usage", message, mend)


def nothing_verified(file: Path, what: str) -> Failure:
    """A file without a single one of `what`: a script must not go on as if something had been proven."""
    name = "standard input" if str(file) == "-" else file
    message = f"{name} has no {what}: nothing was verified"
    return Failure(ScriptExit.VERIFICATION_FAILED, "nothing_verified", message, "is this the right file?")
