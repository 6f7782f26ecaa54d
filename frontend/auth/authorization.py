"""The two headers that carry a token and its proof (RFC 9449 §7.1, §4.3).

Only finds them: what they hold is for the lease, the operators and the proof check to judge.
"""

from collections.abc import Iterable

from frontend.errors import GateError

SCHEME = "dpop"


def parse_authorization(headers: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """(token, proof) from headers with lower case names.

    Raises GateError: missing_auth_header unless there is exactly one `Authorization: DPoP <token>` and a DPoP header;
    invalid_dpop when there are two, since a second one is an attempt to have two readers see different proofs.
    """
    authorization: list[str] = []
    proofs: list[str] = []
    for name, value in headers:
        if name == "authorization":
            authorization.append(value)
        elif name == "dpop":
            proofs.append(value)
    if len(authorization) != 1:
        raise GateError("missing_auth_header", cause=f"{len(authorization)} Authorization headers")
    # The scheme's case does not matter (RFC 9110 §11.1), the token's does.
    scheme, _, rest = authorization[0].partition(" ")
    token = rest.strip(" ")
    if scheme.lower() != SCHEME or not token:
        raise GateError("missing_auth_header", cause="Authorization is not of the form: DPoP <token>")
    if not proofs:
        raise GateError("missing_auth_header", cause="no DPoP header")
    if len(proofs) != 1:
        raise GateError("invalid_dpop", cause=f"{len(proofs)} DPoP headers")
    return token, proofs[0]
