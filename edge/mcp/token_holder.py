"""The holder of an access token that is bound to a key (RFC 9449): a proof for each request, judged by the gateway.

Guarantees that no proof is shown to the gateway but with the request that it came with. SECURITY: the edge judges none.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec
from gateway_client.errors import GatewayError, Unavailable

from edge.endpoints import READ_SECONDS, EdgeEndpoint
from edge.gateway import ClientSocket, NoAnswer
from ipc.network.edge_headers import CLIENT_DPOP

PATH: Final = "/v1/proofs"
ENDPOINT: Final = EdgeEndpoint("POST", re.compile(PATH), READ_SECONDS)
"""For the edge's own requests: no client reaches it by way of the edge."""
MAX_ANSWER: Final = 64 * 1024


class _RefusedProof(msgspec.Struct, frozen=True):
    error: str


class TokenHolder:
    """The holder of one token."""

    def __init__(self, gateway: ClientSocket, token: str) -> None:
        self._gateway = gateway
        self._token = token
        self._fresh: str | None = None
        self.was_shown = False
        """True once the proof of the last `showing` was taken for a lease."""

    def proof(self) -> str:
        """The proof for a lease. Raises Unavailable where the request under way has used its own."""
        if self._fresh is None:
            raise Unavailable("replay_detected", reason="the lease is over, and another one needs a new proof")
        self.was_shown = True
        return self._fresh

    @contextmanager
    def showing(self, proof: str) -> Iterator[None]:
        """A lease that is asked for meanwhile is asked for with this proof."""
        self._fresh, self.was_shown = proof, False
        try:
            yield
        finally:
            self._fresh = None

    async def judge(self, proof: str, address: str) -> None:
        """Have the gateway judge token and proof, which came from this address. Raises GatewayError."""
        headers = [(b"authorization", b"DPoP " + self._token.encode()), (CLIENT_DPOP.encode(), proof.encode())]
        try:
            async with self._gateway.asked(address, ENDPOINT, PATH.encode(), headers, b"") as answer:
                body = bytearray()
                async for part in answer.parts():
                    body += part
                    if len(body) > MAX_ANSWER:
                        raise NoAnswer(502, "gateway_broke_off")
                status, told = answer.status, dict(answer.headers)
        except NoAnswer as none:
            raise GatewayError(none.code, status=none.status) from None
        if status == 200:
            return
        try:
            code = msgspec.json.decode(body, type=_RefusedProof).error
        except msgspec.MsgspecError:
            code = "gateway_broke_off"
        wait = told.get(b"retry-after", b"")
        raise GatewayError(code, status=status, retry_after=int(wait) if wait.isdigit() else None)
