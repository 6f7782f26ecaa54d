"""The identity of a caller behind `gateway edge`, by the credential that the edge hands on.

SECURITY: nothing is taken from the edge's own user id but that the caller is not of this host.
"""

from frontend.auth.certificates import CertificateJudge
from frontend.auth.identity import Identity
from frontend.auth.tokens import TokenJudge
from frontend.errors import GateError

CLIENT_CERT = "client-cert"


async def identify_remote(
    tokens: TokenJudge, certificates: CertificateJudge, headers: list[tuple[str, str]]
) -> Identity:
    """Identify by exactly one `Authorization: Bearer`, or one `Client-Cert` where certificates give identities.

    Raises GateError: see TokenJudge.judge and CertificateJudge.judge.
    """
    shown = [value.partition(" ") for name, value in headers if name == "authorization"]
    handed = [value for name, value in headers if name == CLIENT_CERT] if certificates.has_rows else []
    if len(handed) == 1 and not shown:
        return certificates.judge(handed[0].strip(" \t"))
    if handed or len(shown) != 1 or shown[0][0].lower() != "bearer":
        raise GateError(
            "identity_forbidden", cause="a caller behind the edge does not show exactly one token or certificate",
            message="a lease needs one token (Authorization: Bearer), or a client certificate and no token",
        )  # fmt: skip
    return await tokens.judge(shown[0][2].strip(" "))
