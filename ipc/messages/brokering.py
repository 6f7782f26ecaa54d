"""The broker with its supervisor, and with fronts, which ask it for what calls need from outside.

SECURITY: it talks to servers of others. It hears whole questions, answers each with one text or one reason, and reaches
no plan, no evidence, no key and no file.
"""

import hashlib
from typing import ClassVar

from ipc.configuration.secret_ways import AsToken
from ipc.messages.message import Message
from ipc.settings import EgressSettings
from ipc.walls.given import Given


class StartBroker(Message, frozen=True):
    """First message to a broker."""

    egress: EgressSettings
    walls: Given
    own_servers: frozenset[str] = frozenset()
    """Servers that no private network leads to (ipc/network/own_servers.py)."""


class BrokerReady(Message, frozen=True):
    """Its walls stand."""


class AttachAsker(Message, frozen=True):
    """The channel of a front comes along."""

    FDS: ClassVar[int] = 1
    front_id: str


class AttachBroker(Message, frozen=True):
    """A fresh broker; its channel comes along. The one before is gone, and answers nothing more."""

    FDS: ClassVar[int] = 1
    pid: int


class NeedBroker(Message, frozen=True):
    """An action needs a broker. Answered by AttachBroker, once for each broker."""


class ReplaceBroker(Message, frozen=True):
    """The broker `pid` missed a deadline or broke the protocol: kill it, attach another."""

    pid: int
    reason: str


class AskToken(Message, frozen=True):
    """A token of this way, within `seconds`. Answered by TokenGiven or BrokerRefused."""

    number: int
    principal: str
    """Questions are bounded for each."""
    seconds: float
    way: AsToken
    client_secret: str
    refused: str | None = None
    """`digest_of` a token that the upstream has refused: the server is asked for another one."""

    def __repr__(self) -> str:
        return f"AskToken({self.number})"


class AskKeys(Message, frozen=True):
    """The public keys of an issuer (a JWK set), within `seconds`. Answered by KeysGiven or BrokerRefused."""

    number: int
    principal: str
    """The issuer's own share of the questions that may be open."""
    seconds: float
    url: str
    newer_than: float
    """When the set was fetched that the front has (`time.monotonic()`): one that was fetched later is given at once."""
    is_unknown: bool = False
    """A token names a key that is in none of them."""


class KeysGiven(Message, frozen=True):
    """The set as the issuer sent it, and when it was fetched (`time.monotonic()`)."""

    number: int
    keys: bytes
    fetched_at: float


class TokenGiven(Message, frozen=True):
    """The token, for one call."""

    number: int
    token: str

    def __repr__(self) -> str:
        return f"TokenGiven({self.number})"


class BrokerRefused(Message, frozen=True):
    """There is no answer, for this reason: a sentence without a secret."""

    number: int
    reason: str


def digest_of(token: str) -> str:
    """The name of a token: SHA-256, hexadecimal."""
    return hashlib.sha256(token.encode()).hexdigest()


SupervisorToBroker = StartBroker | AttachAsker
BrokerToSupervisor = BrokerReady
FrontToBroker = AskToken | AskKeys
BrokerToFront = TokenGiven | KeysGiven | BrokerRefused
