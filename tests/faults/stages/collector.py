"""A gateway with a collector of spans and events, which is down when the gateway starts."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from tests.faults.between import REFUSES, Between
from tests.faults.stages.core import digest, payment, transfers
from tests.faults.table.collector import COLLECTOR
from tests.faults.table.rows import START
from tests.faults.walk import Stage
from tests.support.gateway import gateway, wait_for
from tests.support.manifests import patient
from tests.support.otlp_receiver import receiver
from tests.support.proxied import HOST
from tests.support.upstream import upstream

STATUSES = {"read-only": 503, "full": 507}
"""Fault -> the status of its answers."""


@contextmanager
def collector_stage(folder: Path) -> Iterator[list[Stage]]:
    """A call after each fault is exported, and the event of a call during it."""
    with ExitStack() as stack:
        up, received = stack.enter_context(upstream()), stack.enter_context(receiver())
        between = Between(("127.0.0.1", int(received.endpoint.rpartition(":")[2])))
        stack.callback(between.close)
        start = ExitStack()
        start.enter_context(between.failing(REFUSES))
        tables = f"""
[telemetry.otlp]
endpoint = "http://127.0.0.1:{between.port}"
[egress]
unsafe_resolve = {{"{HOST}" = "{up.address}"}}
"""
        gate = stack.enter_context(gateway(folder, patient(folder / "actions") + tables))

        @contextmanager
        def failing(fault: str) -> Iterator[None]:
            with ExitStack() as failing:
                if fault == START:
                    failing.enter_context(start.pop_all())
                elif fault in STATUSES:
                    received.status = STATUSES[fault]
                else:
                    failing.enter_context(between.failing(fault))
                yield
            received.status = 200

        def afterwards(_fault: str, trace_id: str) -> None:
            wait_for(lambda: trace_id in received.traces_of_events(), "the event of the call during the fault")
            answer = digest(gate.agent())
            assert received.trace(answer.headers["x-trace-id"])

        effects = partial(transfers, up)
        yield [Stage(COLLECTOR, gate, failing, digest, payment, effects, afterwards=afterwards)]
