"""An agent and an operator of the gateway that the tests run on, over its sockets."""

import base64
import hashlib
import time
import uuid
from pathlib import Path
from typing import Any, Final

import httpcore
import jwt
import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

ANSWER_SECONDS: Final = 3700.0
"""An action may take an hour."""


class RunningGateway(msgspec.Struct, frozen=True):
    """The members of the ready line that a client needs."""

    public_base_url: str
    client_socket: str
    admin_socket: str
    operator: "RunningOperator"


class RunningOperator(msgspec.Struct, frozen=True):
    """The operator that `gateway dev` makes."""

    key: str
    private_key_file: str


class GatewayAnswer(msgspec.Struct, frozen=True):
    """Status, body and headers, with lower-case names."""

    status: int
    body: Any
    headers: dict[str, str]


class ProvenClient:
    """Sends requests with a proof of its key."""

    def __init__(self, gateway: RunningGateway, socket: str, key: ec.EllipticCurvePrivateKey, token: str) -> None:
        self._base = gateway.public_base_url
        self._pool = httpcore.ConnectionPool(uds=socket, retries=0)
        self._key = key
        self._token = token

    @classmethod
    def of_operator(cls, gateway: RunningGateway) -> "ProvenClient":
        """The operator."""
        key = serialization.load_pem_private_key(Path(gateway.operator.private_key_file).read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return cls(gateway, gateway.admin_socket, key, gateway.operator.key)

    @classmethod
    def of_agent(cls, gateway: RunningGateway, scopes: tuple[str, ...]) -> "ProvenClient":
        """An agent with a new lease, as the principal that the gateway maps this user to. Raises ValueError."""
        key = ec.generate_private_key(ec.SECP256R1())
        agent = cls(gateway, gateway.client_socket, key, "")
        answer = agent.send("POST", "/v1/leases", {"scopes": list(scopes), "dpop_jwk": _public_jwk(key)})
        if answer.status != 200:
            raise ValueError(f"no lease: {answer.status} {answer.body}")
        agent._token = answer.body["lease_jwt"]
        return agent

    def send(self, method: str, path: str, body: Any = None) -> GatewayAnswer:
        """One request and its answer. Raises OSError."""
        headers: dict[str | bytes, str | bytes] = {"Host": "gateway", "Content-Type": "application/json"}
        if self._token:
            headers |= {"Authorization": f"DPoP {self._token}", "DPoP": self._proof(method, path)}
        content = b"" if body is None else msgspec.json.encode(body)
        timeouts = dict.fromkeys(("connect", "read", "write", "pool"), ANSWER_SECONDS)
        try:
            answer = self._pool.request(
                method, f"http://gateway{path}", headers=headers, content=content, extensions={"timeout": timeouts}
            )
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            raise OSError(f"the gateway does not answer: {error}") from None
        names = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in answer.headers}
        return GatewayAnswer(answer.status, msgspec.json.decode(answer.content), names)

    def _proof(self, method: str, path: str) -> str:
        claims = {
            "jti": str(uuid.uuid4()), "htm": method, "htu": self._base + path, "iat": int(time.time()),
            "ath": _b64(hashlib.sha256(self._token.encode()).digest()),
        }  # fmt: skip
        return jwt.encode(claims, self._key, "ES256", {"typ": "dpop+jwt", "jwk": _public_jwk(self._key)})


def _public_jwk(key: ec.EllipticCurvePrivateKey) -> dict[str, str]:
    numbers = key.public_key().public_numbers()
    x, y = (_b64(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
    return {"kty": "EC", "crv": "P-256", "x": x, "y": y}


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
