"""A store whose every request is timed and counted, whatever backend answers it.

Stands between the services and the backend, so that no backend has to count. What it learns of holds on the way it
counts too: the store alone says who ended one, so each beginning and each end is counted once, among all fronts.
"""

import inspect
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

from frontend.stores.interface import ApprovalRecord, Hold, Store, StoreUnavailable
from frontend.telemetry.metrics import ENDS, HELD, Metrics

Operation = Callable[..., Awaitable[Any]]

OPERATIONS = tuple(
    name for name, member in vars(Store).items() if inspect.iscoroutinefunction(member) and name != "close"
)


def measured(store: Store, metrics: Metrics) -> Store:
    """`store` with every operation of the interface measured."""
    return cast(Store, _Measured(store, metrics))


class _Measured:
    """Has the operations of the interface as attributes: one function each, made once."""

    def __init__(self, store: Store, metrics: Metrics) -> None:
        self._store = store
        counted: dict[str, Callable[[Any], None]] = {
            "approval_hold": partial(_count_hold, metrics),
            "approval_move": partial(_count_move, metrics),
            "approval_expire": partial(_count_expired, metrics),
        }
        for name in OPERATIONS:
            setattr(self, name, _timed(name, getattr(store, name), metrics, counted.get(name)))

    async def close(self) -> None:
        """Release the backend."""
        await self._store.close()


def _timed(name: str, operation: Operation, metrics: Metrics, count: Callable[[Any], None] | None) -> Operation:
    observe = metrics.store_seconds.observe

    async def ask(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        try:
            found = await operation(*args, **kwargs)
        except StoreUnavailable:
            observe(time.perf_counter() - began, name)
            metrics.store_errors.add(name)
            raise
        observe(time.perf_counter() - began, name)
        if count is not None:
            count(found)
        return found

    return ask


def _count_hold(metrics: Metrics, hold: Hold) -> None:
    if hold.kind == "stored":
        metrics.approvals.add(HELD)


def _count_move(metrics: Metrics, record: ApprovalRecord | None) -> None:
    if record is not None and record.state in ENDS:
        metrics.approvals.add(record.state)


def _count_expired(metrics: Metrics, records: list[ApprovalRecord]) -> None:
    for record in records:
        _count_move(metrics, record)
