"""The identity of a caller behind `gateway edge`, by the credential that the edge hands on.

SECURITY: nothing is taken from the edge's own user id but that the caller is not of this host.
"""

import msgspec
from msgspec.structs import replace

from frontend.auth.authentication import Authentication
from frontend.auth.certificates import CertificateJudge
from frontend.auth.identity import Identity
from frontend.auth.tokens import TokenJudge
from frontend.errors import GateError
from ipc.network.edge_headers import CLIENT_CERT, CLIENT_DPOP, MCP_PATH


class RemoteCallers(msgspec.Struct, frozen=True):
    """Identifies callers. Each method raises GateError: see TokenJudge.judge, CertificateJudge.judge and
    Authentication.token_holder."""

    tokens: TokenJudge
    certificates: CertificateJudge
    authentication: Authentication

    async def identify(self, headers: list[tuple[str, str]]) -> Identity:
        """Identify by exactly one `Authorization`, or one `Client-Cert` where certificates give identities.

        `Authorization: DPoP` comes from the edge's `/mcp` alone, with the proof of the token's holder.
        """
        shown = _values(headers, "authorization")
        handed = _values(headers, CLIENT_CERT) if self.certificates.has_rows else []
        if len(handed) == 1 and not shown:
            return self.certificates.judge(handed[0].strip(" \t"))
        scheme = shown[0].partition(" ")[0].lower() if len(shown) == 1 and not handed else ""
        proofs = _values(headers, CLIENT_DPOP)
        if scheme == "dpop" and proofs:
            return await self.holder(headers)
        if scheme != "bearer" or proofs:
            raise GateError(
                "identity_forbidden", cause="a caller behind the edge does not show exactly one token or certificate",
                message="a lease needs one token (Authorization: Bearer), or a client certificate and no token",
            )  # fmt: skip
        return await self.tokens.judge(_token(shown[0]))

    async def holder(self, headers: list[tuple[str, str]]) -> Identity:
        """The identity of a client of `/mcp` by its token and a proof of the key that the token is bound to.

        The proof is used by this. The identity may have a lease for another key: the edge's.
        """
        shown, proofs = _values(headers, "authorization"), _values(headers, CLIENT_DPOP)
        if len(shown) != 1 or shown[0].partition(" ")[0].lower() != "dpop" or len(proofs) != 1:
            raise GateError(
                "identity_forbidden", cause="a client of /mcp does not show exactly one token with one proof",
                message="one token and one proof are needed",
            )  # fmt: skip
        token = _token(shown[0])
        identity = await self.tokens.judge(token)
        if identity.jkt is None:
            raise GateError(
                "identity_forbidden", cause="a token that is bound to no key is shown with a proof",
                message="this token is bound to no key",
            )  # fmt: skip
        await self.authentication.token_holder(proofs[0], token, identity.jkt, MCP_PATH)
        return replace(identity, jkt=None)


def _values(headers: list[tuple[str, str]], wanted: str) -> list[str]:
    return [value for name, value in headers if name == wanted]


def _token(value: str) -> str:
    return value.partition(" ")[2].strip(" ")
