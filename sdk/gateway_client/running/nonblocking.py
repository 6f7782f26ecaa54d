"""Runs flows in tasks, under asyncio or trio. One runner serves any number of tasks of one event loop.

Guarantees that a step ends by its deadline and that what it raises is the library's own; cancelling is passed on.
"""

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import anyio
import httpx

from gateway_client.calling.core import Limits
from gateway_client.errors import GatewayError, Unreachable
from gateway_client.running.deadlines import KEEPALIVE_SECONDS
from gateway_client.running.sending import FAILURES, CollectedBody, failure, http_request, tls_context
from gateway_client.wire.address import Address
from gateway_client.wire.exchange import ReceivedAnswer
from gateway_client.wire.flows import Alone, Flow, Pause, Send, Step, presented

T = TypeVar("T")
P = ParamSpec("P")


class NonblockingRunner:
    """Performs the steps of flows over httpx."""

    def __init__(self, address: Address, limits: Limits) -> None:
        self._address = address
        self._limits = limits
        transport = httpx.AsyncHTTPTransport(
            verify=tls_context(address),
            trust_env=False,
            uds=address.socket,
            limits=httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=KEEPALIVE_SECONDS),
        )
        self._http = httpx.AsyncClient(transport=transport, trust_env=False, follow_redirects=False)
        self._turn = anyio.Lock()
        self._is_closed = False

    async def run(self, flow: Flow[T]) -> T:
        """The result of a flow, or what it raises."""
        try:
            step = next(flow)
            while True:
                try:
                    outcome = await self._perform(step)
                except GatewayError as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(outcome)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            flow.close()

    async def close(self) -> None:
        """Close every connection."""
        self._is_closed = True
        await self._http.aclose()

    async def _perform(self, step: Step) -> Any:
        if self._is_closed:
            raise Unreachable("client_closed", was_sent=False)
        if isinstance(step, Send):
            return await self._send(step)
        if isinstance(step, Pause):
            await anyio.sleep(step.seconds)
            return None
        return await self._alone(step)

    async def _alone(self, step: Alone) -> Any:
        try:
            with anyio.fail_after(step.seconds):
                await self._turn.acquire()
        except TimeoutError:
            raise Unreachable("timed_out", was_sent=False) from None
        try:
            return await self.run(step.flow)
        finally:
            self._turn.release()

    async def _send(self, step: Send) -> ReceivedAnswer:
        try:
            with anyio.fail_after(step.seconds):
                request = http_request(self._address, step.request, self._limits, step.seconds)
                response = await self._http.send(request, stream=True)
                try:
                    return await self._read(response)
                finally:
                    await response.aclose()
        except FAILURES as error:
            problem = failure(error)
        except RuntimeError:  # httpx says so of a client that was closed under way
            if not self._is_closed:
                raise
            problem = Unreachable("client_closed", was_sent=True)
        raise Unreachable("client_closed", was_sent=True) if self._is_closed else problem

    async def _read(self, response: httpx.Response) -> ReceivedAnswer:
        collected = CollectedBody(response, self._limits)
        try:
            async for part in response.aiter_raw():
                if not collected.add(part):
                    # Reading on fails then, which ends the generators below; left alone, trio would warn of them.
                    await response.aclose()
        except FAILURES:
            if not collected.is_too_large:
                raise
        return collected.answer()


class NonblockingClient:
    """A core that makes flows, and a runner for them."""

    _core: Any
    _runner: NonblockingRunner

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection. Tasks that pause between two attempts end with client_closed after their pause."""
        await self._runner.close()


def nonblocking(flow: Callable[Concatenate[Any, P], Flow[T]]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """The method of an asynchronous client that runs this method of its core."""

    async def method(self: NonblockingClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._runner.run(flow(self._core, *args, **kwargs))

    return presented(method, flow)
