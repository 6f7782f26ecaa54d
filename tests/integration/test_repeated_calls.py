"""Calls made again under their `Idempotency-Key` on two whole gateways with one Redis: the upstream has each once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.gateway import Bearer, Gateway, config_for, gateway
from tests.support.manifests import patient
from tests.support.redis_server import RedisServer
from tests.support.upstream import Upstream

TEXT = {"text": "a"}
PATH = "/v1/actions/text_digest/execute"


@pytest.fixture(scope="module")
def hosts(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Gateway]]:
    """Two gateways with ledgers of their own and one store."""
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    folders: list[Path] = [tmp_path_factory.mktemp(name) for name in ("one", "two")]
    store = f'\n[store]\nredis_url = "redis://localhost:{server.port}"\n'
    with (
        gateway(folders[0], config_for(up.address, patient(folders[0] / "actions") + store)) as one,
        gateway(folders[1], config_for(up.address, patient(folders[1] / "actions") + store)) as two,
    ):
        yield [one, two]
    server.close()


def again(agent: Bearer, key: str) -> Any:
    """Execute under a key."""
    return agent.http.post(PATH, headers=agent.headers("POST", PATH) | {"Idempotency-Key": key}, json=TEXT)


def test_of_two_hosts_that_are_asked_at_the_same_time_one_runs_the_call(hosts: list[Gateway]) -> None:
    agents = [host.agent() for host in hosts]
    with ThreadPoolExecutor(4) as pool:
        for number in range(20):
            asked = [pool.submit(again, agents[turn % 2], f"key-{number}") for turn in range(4)]
            codes = sorted(one.result().json().get("error", "") for one in asked)
            assert codes.count("") == 1, codes
            assert set(codes) <= {"", "call_in_progress", "already_executed"}


def test_the_other_host_names_the_receipt(hosts: list[Gateway]) -> None:
    first = again(hosts[0].agent(), '"across"')
    repeated = again(hosts[1].agent(), "across")
    assert (repeated.status_code, repeated.json()["error"]) == (409, "already_executed")
    assert repeated.headers["X-Receipt-Id"] == first.json()["receipt_id"]
    assert repeated.headers["Idempotent-Replayed"] == "true"
