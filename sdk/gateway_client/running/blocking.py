"""Runs flows in the calling thread. One runner serves any number of threads.

Guarantees that a step ends by its deadline and that what it raises is the library's own. `close` wakes waiting threads.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx

from gateway_client.calling.core import Limits
from gateway_client.errors import GatewayError, Unreachable
from gateway_client.running.deadlines import DeadlineTransport, until
from gateway_client.running.sending import FAILURES, CollectedBody, failure, http_request, tls_context
from gateway_client.wire.address import Address
from gateway_client.wire.exchange import ReceivedAnswer
from gateway_client.wire.flows import Alone, Flow, Pause, Send, Step, presented

T = TypeVar("T")
P = ParamSpec("P")


class BlockingRunner:
    """Performs the steps of flows over httpx."""

    def __init__(self, address: Address, limits: Limits) -> None:
        self._address = address
        self._limits = limits
        self._http = httpx.Client(
            transport=DeadlineTransport(address, tls_context(address)), trust_env=False, follow_redirects=False
        )
        self._turn = threading.Lock()
        self._closed = threading.Event()

    def run(self, flow: Flow[T]) -> T:
        """The result of a flow, or what it raises."""
        try:
            step = next(flow)
            while True:
                try:
                    outcome = self._perform(step)
                except GatewayError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(outcome)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            flow.close()

    def close(self) -> None:
        """Close every connection; calls that wait end with Unreachable client_closed."""
        self._closed.set()
        self._http.close()

    def _perform(self, step: Step) -> Any:
        if self._closed.is_set():
            raise Unreachable("client_closed", was_sent=False)
        if isinstance(step, Send):
            return self._send(step)
        if isinstance(step, Pause):
            self._closed.wait(step.seconds)
            return None
        return self._alone(step)

    def _alone(self, step: Alone) -> Any:
        if not self._turn.acquire(timeout=step.seconds):
            raise Unreachable("timed_out", was_sent=False)
        try:
            return self.run(step.flow)
        finally:
            self._turn.release()

    def _send(self, step: Send) -> ReceivedAnswer:
        try:
            with until(time.monotonic() + step.seconds):
                request = http_request(self._address, step.request, self._limits, step.seconds)
                response = self._http.send(request, stream=True)
                try:
                    collected = CollectedBody(response, self._limits)
                    for part in response.iter_raw():
                        if not collected.add(part):
                            break
                    return collected.answer()
                finally:
                    response.close()
        except FAILURES as error:
            problem = failure(error)
        except RuntimeError:  # httpx says so of a client that was closed under way
            if not self._closed.is_set():
                raise
            problem = Unreachable("client_closed", was_sent=True)
        raise Unreachable("client_closed", was_sent=True) if self._closed.is_set() else problem


class BlockingClient:
    """A core that makes flows, and a runner for them."""

    _core: Any
    _runner: BlockingRunner

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection; calls of other threads end with Unreachable client_closed."""
        self._runner.close()


def blocking(flow: Callable[Concatenate[Any, P], Flow[T]]) -> Callable[Concatenate[Any, P], T]:
    """The method of a client that runs this method of its core."""

    def method(self: BlockingClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._runner.run(flow(self._core, *args, **kwargs))

    return presented(method, flow)
