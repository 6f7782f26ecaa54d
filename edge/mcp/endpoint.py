"""`POST /mcp` and the metadata of the resource (RFC 9728), as the MCP authorization specification has them.

Each request shows its token. The edge refuses one that is not for this resource; the gateway judges the others, when
it is asked for the caller's lease. A lost session can't happen: the server keeps none for clients (stateless).
SECURITY: a message that two readers could read differently never reaches the package, which takes the last value.
"""

import logging
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec
from gateway_client.errors import GatewayError
from gateway_client.mcp_server.frames import messages_of
from gateway_client.wire.address import Address

from edge.connection import CONNECTION
from edge.gateway import ClientSocket
from edge.heads import answer_headers
from edge.mcp.access_tokens import SCOPE, AccessRefused, checked_claims, shown_token
from edge.mcp.callers import McpCallers, Message, Receive, Send, TooManyCallers
from edge.refusals import EdgeRefusals
from frontend.telemetry.logs import log, trace_now
from ipc.configuration.edge_settings import EdgeMcpSettings, EdgeSettings
from ipc.network.edge_headers import MCP_PATH

PATH: Final = MCP_PATH.encode()
METADATA: Final = b"/.well-known/oauth-protected-resource"
BUSY_SECONDS: Final = 5
ALGORITHMS: Final = "ES256"
"""The algorithms of proofs, as the gateway has them."""
REFUSED_PROOF: Final = frozenset({"invalid_dpop", "replay_detected"})


class McpEndpoint:
    """The endpoint, and its callers."""

    def __init__(
        self, settings: EdgeSettings, mcp: EdgeMcpSettings, gateway: ClientSocket, refusals: EdgeRefusals
    ) -> None:
        self._refusals = refusals
        base = settings.public_base_url
        parts = urlsplit(base)
        self._origin = f"{parts.scheme}://{parts.netloc}".encode()
        self._resource = base + PATH.decode()
        self._metadata_url = f"{base}{METADATA.decode()}{PATH.decode()}"
        self._metadata = msgspec.json.encode({
            "resource": self._resource, "authorization_servers": mcp.authorization_servers,
            "scopes_supported": [SCOPE], "bearer_methods_supported": ["header"],
            "dpop_signing_alg_values_supported": [ALGORITHMS],
        })  # fmt: skip
        self._callers = McpCallers(Address.parse(f"unix://{settings.client_socket}", base), gateway)
        # SECURITY: the package quotes requests in its warnings.
        logging.getLogger("mcp").addHandler(logging.NullHandler())
        logging.getLogger("mcp").propagate = False

    async def run(self) -> None:
        """Serve callers until cancelled."""
        await self._callers.run()

    @staticmethod
    def serves(path: bytes) -> bool:
        """True for paths that are answered here."""
        return path in (PATH, METADATA, METADATA + PATH)

    async def answer(self, scope: Message, body: bytes, receive: Receive, send: Send) -> None:
        """Answer a request whose body has been read."""
        method, path = scope["method"], scope["raw_path"]
        wanted = "POST" if path == PATH else "GET"
        if method != wanted:
            await _answer(send, 405, {"error": "method_not_allowed"}, [(b"allow", wanted.encode())])
        elif path != PATH:
            await _answer(send, 200, msgspec.Raw(self._metadata), [(b"cache-control", b"max-age=3600")])
        elif any(name == b"origin" and value != self._origin for name, value in scope["headers"]):
            await _answer(send, 403, {"error": "origin_forbidden"})
        else:
            await self._called(scope, body, receive, send)

    async def _called(self, scope: Message, body: bytes, receive: Receive, send: Send) -> None:
        is_proven = False
        try:
            shown = shown_token(scope["headers"])
            is_proven = shown.proof is not None
            claims, connection = checked_claims(shown, self._resource), scope["state"][CONNECTION]
            async with self._callers.admitted(shown, claims, connection.address) as caller:
                refusal = next((one for one in messages_of(body) if isinstance(one, bytes)), None)
                if refusal is None:
                    await caller.handle(scope, _replay(body, receive), _plain(send))
                else:
                    await _answer(send, 400, msgspec.Raw(refusal.strip()))
        except AccessRefused as refused:
            await self._challenge(send, refused)
        except TooManyCallers:
            self._refusals.count("mcp_callers", scope["state"][CONNECTION].address)
            await _answer(send, 503, {"error": "edge_busy"}, [(b"retry-after", b"%d" % BUSY_SECONDS)])
        except GatewayError as error:
            await self._refuse(send, error, is_proven=is_proven)

    async def _refuse(self, send: Send, error: GatewayError, *, is_proven: bool) -> None:
        """The answer where the gateway gives no lease, or does not accept the proof of a request."""
        if error.code == "identity_forbidden":
            rule = "the gateway does not accept the token"
            await self._challenge(send, AccessRefused(401, "invalid_token", rule, needs_proof=is_proven))
            return
        if error.code in REFUSED_PROOF:
            rule = "the gateway does not accept the proof"
            await self._challenge(send, AccessRefused(401, "invalid_dpop_proof", rule, needs_proof=True))
            return
        log.warning("no lease for an MCP caller", code=error.code)
        status = 429 if error.status == 429 else 503
        wait = BUSY_SECONDS if error.retry_after is None else max(1, round(error.retry_after))
        await _answer(send, status, {"error": error.code}, [(b"retry-after", b"%d" % wait)])

    async def _challenge(self, send: Send, refused: AccessRefused) -> None:
        """A refusal that tells the client where tokens come from (RFC 6750, RFC 9449, RFC 9728)."""
        told = [f'resource_metadata="{self._metadata_url}"', f'scope="{SCOPE}"']
        if refused.error is not None:
            told = [f'error="{refused.error}"', f'error_description="{refused.rule}"', *told]
        proven = f'DPoP {", ".join(told)}, algs="{ALGORITHMS}"'
        challenges = [proven] if refused.needs_proof else [f"Bearer {', '.join(told)}"]
        if refused.error is None:
            challenges.append(proven)
        headers = [(b"www-authenticate", one.encode()) for one in challenges]
        document = {"error": refused.error or "token_needed", "reason": refused.rule}
        await _answer(send, refused.status, document, headers)


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body first, then the end of the connection."""
    parts = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return parts.pop() if parts else await receive()

    return received


def _plain(send: Send) -> Send:
    """With the trace of the request, and without headers of a connection."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*answer_headers(message["headers"]), (b"x-trace-id", trace_now().encode())]
            message = {**message, "headers": headers}
        await send(message)

    return sent


async def _answer(send: Send, status: int, document: object, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
    body = msgspec.json.encode(document)
    told = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *headers]
    plain = _plain(send)
    await plain({"type": "http.response.start", "status": status, "headers": told})
    await plain({"type": "http.response.body", "body": body, "more_body": False})
