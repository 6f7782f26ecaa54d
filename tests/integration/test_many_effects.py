"""Calls that wait for upstreams by the hundred: all are served, in few processes, and hold up no other action."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import httpx

from ipc.limits import MAX_AHEAD
from tests.support.gateway import ANSWER_SECONDS, Bearer, Gateway, config_for, gateway, wait_for
from tests.support.manifests import patient
from tests.support.upstream import Upstream

SESSIONS = 4
"""One session alone has a rate below 256 a second."""
CALLS = 256
PLACES = 48


@contextmanager
def agents_of(gate: Gateway) -> Iterator[list[Bearer]]:
    """Agents with sessions and connections of their own."""
    with ExitStack() as stack:
        clients = [
            stack.enter_context(
                httpx.Client(
                    base_url=gate.ready["base_url"], timeout=ANSWER_SECONDS, limits=httpx.Limits(max_connections=CALLS)
                )
            )
            for _ in range(SESSIONS)
        ]  # fmt: skip
        yield [replace(gate.agent(), http=client) for client in clients]


def at_upstream(up: Upstream, path: str) -> int:
    """Requests for this path that have come."""
    return sum(path in seen.path for seen in up.seen)


def test_256_calls_at_once_at_a_slow_upstream_are_all_served_by_default_in_few_workers(
    tmp_path: Path, up: Upstream
) -> None:
    with (
        gateway(tmp_path, config_for(up.address, patient(tmp_path / "actions"))) as gate,
        agents_of(gate) as agents,
        ThreadPoolExecutor(CALLS) as threads,
    ):
        answers = threads.map(
            lambda number: agents[number % SESSIONS].execute("http_fetch", {"path": "slow/200"}).status_code,
            range(CALLS),
        )
        assert Counter(answers) == {200: CALLS}
        assert len(gate.children("worker http")) <= CALLS // MAX_AHEAD + 4, "a few may have been on their way"


def test_an_action_whose_upstream_hangs_leaves_places_for_another_one(tmp_path: Path, up: Upstream) -> None:
    config = patient(tmp_path / "actions")
    config += f"[limits]\nworker_wait_seconds = 300\n[workers]\nhttp = {{min_spare = 1, max = {PLACES}}}\n"
    with (
        gateway(tmp_path, config_for(up.address, config)) as gate,
        agents_of(gate) as agents,
        ThreadPoolExecutor(PLACES) as threads,
    ):
        waits = f"wait/{tmp_path.name}"
        hanging: list[Future[httpx.Response]] = [
            threads.submit(agents[number % SESSIONS].execute, "http_fetch", {"path": waits}) for number in range(PLACES)
        ]
        try:
            wait_for(lambda: at_upstream(up, waits) == PLACES * 2 // 3, "as many calls as one action may have")
            for _ in range(3):
                assert agents[0].execute("http_post", {"path": "x", "message": "y"}).status_code == 200
            assert at_upstream(up, waits) == PLACES * 2 // 3, "the rest waits"
        finally:
            up.held(tmp_path.name).set()
        assert {call.result(ANSWER_SECONDS).status_code for call in hanging} == {200}
        assert at_upstream(up, waits) == PLACES
