"""How the core asks for I/O without doing any: a flow is a generator that yields steps and gets their results.

A runner (gateway_client/running/) performs the steps. The same flow so serves threads, asyncio and trio, and a test can
play the world without a socket. A step that fails raises inside the flow.
"""

import inspect
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, get_args

from gateway_client.wire.exchange import SentRequest

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Send:
    """Send this request once; gives the wire.Answer. Raises Unreachable or ProtocolViolation within `seconds`."""

    request: SentRequest
    seconds: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Let time go by."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Alone:
    """Run a flow while no other flow of this client is inside an Alone; gives its result.

    Raises Unreachable timed_out when the turn does not come within `seconds`.
    """

    flow: "Flow[Any]"
    seconds: float


Step: TypeAlias = Send | Pause | Alone
Flow: TypeAlias = Generator[Step, Any, T]


@dataclass(frozen=True, slots=True)
class Clock:
    """The two clocks: `now` in Unix seconds, for proofs and leases; `monotonic` for deadlines."""

    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic


SYSTEM_CLOCK = Clock()

M = TypeVar("M", bound=Callable[..., Any])


def presented(method: M, flow: Callable[..., Flow[Any]]) -> M:
    """`method` with the name, documentation and signature of the flow that it runs."""
    signature = inspect.signature(flow)
    (*_, result) = get_args(signature.return_annotation)
    for name in ("__name__", "__qualname__", "__doc__"):
        setattr(method, name, getattr(flow, name))
    method.__signature__ = signature.replace(return_annotation=result)  # type: ignore[attr-defined]
    return method
