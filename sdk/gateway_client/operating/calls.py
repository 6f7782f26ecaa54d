"""The way of an operator's call: credential, proof, and the rule that no mutation is sent twice. No I/O."""

from typing import TypeVar

from gateway_client.calling.core import Core, Limits, Repeat, json_call
from gateway_client.contract.noun import Noun
from gateway_client.errors import ProtocolViolation
from gateway_client.keys import OperatorCredential
from gateway_client.wire.address import Address
from gateway_client.wire.decoding import decode
from gateway_client.wire.exchange import Headers, ReceivedAnswer, UnprovenCall
from gateway_client.wire.flows import Clock, Flow
from gateway_client.wire.proofs import Prover

N = TypeVar("N", bound=Noun)


class OperatorCalls(Core):
    """Calls with an operator's credential. Reads are asked again after 429 and 503 when the answer says when,
    mutations only after `rate_limit_exceeded`."""

    def __init__(self, address: Address, credential: OperatorCredential, limits: Limits, clock: Clock) -> None:
        super().__init__(limits, clock)
        self._credential = credential
        self._public_base_url = address.public_base_url
        self._prover = Prover(credential.key, address.public_base_url, clock.now)

    def read(self, path: str, query: str = "", timeout: float | None = None) -> Flow[ReceivedAnswer]:
        """The 200 of a GET. Raises GatewayError."""
        answer = yield from self.ask(UnprovenCall("GET", path, query), self.deadline(timeout), Repeat.READ, self._proof)
        return answer.expect(200)

    def write(self, call: UnprovenCall, timeout: float | None = None, *more: int) -> Flow[ReceivedAnswer]:
        """The 200 of a mutation, or an answer of the statuses `more`. Raises GatewayError."""
        answer = yield from self.ask(call, self.deadline(timeout), Repeat.RATE, self._proof)
        return answer.expect(200, *more)

    def change(self, method: str, path: str, body: object = None, query: str = "") -> Flow[ReceivedAnswer]:
        """`write` of a small JSON body."""
        return (yield from self.write(json_call(method, path, body, query)))

    def _proof(self, call: UnprovenCall) -> Headers:
        return self._prover.headers(call, self._credential.token)


def listed(kind: type[N], answer: ReceivedAnswer, name: str) -> tuple[N, ...]:
    """The array `name` of an answer. Raises ProtocolViolation."""
    body = answer.json()
    items = body.get(name) if isinstance(body, dict) else None
    if not isinstance(items, list):
        raise ProtocolViolation(f"the answer has no array {name}", status=answer.status)
    return tuple(decode(kind, one, f"{name}[{number}]") for number, one in enumerate(items))
