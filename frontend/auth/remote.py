"""The identity of a caller behind `gateway edge`, by the credential that the edge hands on.

SECURITY: nothing is taken from the edge's own user id but that the caller is not of this host.
"""

from frontend.auth.identity import Identity
from frontend.auth.tokens import TokenJudge
from frontend.errors import GateError


def identify_remote(judge: TokenJudge, headers: list[tuple[str, str]]) -> Identity:
    """Identify by `Authorization: Bearer`. Raises GateError: see TokenJudge.judge."""
    shown = [value.partition(" ") for name, value in headers if name == "authorization"]
    if len(shown) != 1 or shown[0][0].lower() != "bearer":
        raise GateError(
            "identity_forbidden", cause="a caller behind the edge does not show exactly one token",
            message="a lease needs one token: Authorization: Bearer",
        )  # fmt: skip
    return judge.judge(shown[0][2].strip(" "))
