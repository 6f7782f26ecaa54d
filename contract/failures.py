"""The failure of a call as its agent hears it, beside the bare body of a 502: the headers `X-Failure` and
`X-May-Have-Run`.

Names and meanings stand here alone; gateway, client library and documents take them from here.
"""

from typing import Final, Literal

import msgspec

FailureName = Literal[
    "upstream_unreachable", "upstream_reset", "upstream_timeout", "upstream_status", "upstream_denied", "limit_fuel",
    "limit_memory", "limit_io", "limit_time", "provider_failed", "worker_lost", "secret_missing",
]  # fmt: skip
MayHaveRun = Literal["no", "yes", "unknown"]
"""`no`: no byte of a request left for the upstream, and no file was opened for writing. `yes`: an answer came, or a
file was changed. `unknown`: neither is known."""

FAILURE_HEADER: Final = "X-Failure"
MAY_HAVE_RUN_HEADER: Final = "X-May-Have-Run"


class CallFailure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why a call failed, and whether it may have had its effect all the same."""

    name: FailureName
    may_have_run: MayHaveRun

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Both headers."""
        return (FAILURE_HEADER, self.name), (MAY_HAVE_RUN_HEADER, self.may_have_run)


def fields_of(failure: CallFailure | None) -> dict[str, str]:
    """A failure as fields of an audit event."""
    return {} if failure is None else {"failure": failure.name, "may_have_run": failure.may_have_run}


MEANINGS: Final[dict[FailureName, str]] = {
    "upstream_unreachable": "The upstream, or the egress proxy before it, could not be reached: it refused the "
    "connection, its name has no address, or TLS with it failed.",
    "upstream_reset": "The connection broke, or what came over it is no valid answer.",
    "upstream_timeout": "The call's time ended while it waited for the upstream.",
    "upstream_status": "The upstream answered with a status that the provider takes for a failure.",
    "upstream_denied": "The gateway or the egress proxy refused the effect: a domain, an address, a path, an answer "
    "that repeats a secret.",
    "limit_fuel": "The provider used up its fuel.",
    "limit_memory": "The provider used up its memory.",
    "limit_io": "The provider used up its I/O calls, or an answer or a file was larger than allowed.",
    "limit_time": "The call's time ended while the provider computed.",
    "provider_failed": "The provider failed, or answered what its action does not allow.",
    "worker_lost": "The worker ended before the call did, or could not run it. With a receipt of success: only the "
    "output was lost.",
    "secret_missing": "A secret or a token that the action needs was not there.",
}
