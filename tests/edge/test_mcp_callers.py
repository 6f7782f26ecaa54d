"""Callers of `/mcp`: one lease for each token as long as it lives, bounded by subject, and none without the gateway."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.edge_process import Edge, edge, edge_config
from tests.support.gateway import Gateway, wait_for
from tests.support.mcp_over_http import MCP, access_token, asked


@pytest.fixture(scope="module")
def serving(gate: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    with edge(edge_config(tmp_path_factory.mktemp("serving"), gate.ready["client_socket"], MCP)) as running:
        yield running


def leases(gate: Gateway) -> int:
    return len(gate.events(event_type="LeaseIssued", decision="allow", limit=200))


def test_requests_with_one_token_share_one_lease_also_when_they_come_at_once(serving: Edge, gate: Gateway) -> None:
    before, shown = leases(gate), access_token(jti="once")
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: asked(serving, shown).status_code, range(8)))
    assert answers == [200] * 8
    assert leases(gate) == before + 1


def test_a_token_gives_no_access_after_its_end(serving: Edge, gate: Gateway) -> None:
    assert asked(serving, access_token(jti="first")).status_code == 200  # a first answer takes seconds on a busy host
    for seconds in (5, 20, 50):  # the first may be over before a busy host has looked at it
        before, ends = leases(gate), int(time.time()) + seconds
        shown = access_token(exp=ends)
        if asked(serving, shown).status_code == 200:
            break
    else:
        pytest.fail("no token gave access before its end")
    wait_for(lambda: time.time() >= ends, "the last second of the token")
    ended = wait_for(lambda: one if (one := asked(serving, shown)).status_code != 200 else None, "the end of the token")
    assert ended.status_code == 401
    assert 'error="invalid_token"' in ended.headers["www-authenticate"]
    assert leases(gate) == before + 1


def test_of_too_many_tokens_of_a_subject_the_one_idle_for_longest_makes_room(serving: Edge, gate: Gateway) -> None:
    before, tokens = leases(gate), [access_token(jti=f"t{number}") for number in range(17)]
    for shown in [*tokens, tokens[-1], tokens[1]]:
        assert asked(serving, shown).status_code == 200
    assert leases(gate) == before + 17
    assert asked(serving, tokens[0]).status_code == 200
    assert leases(gate) == before + 18


def test_without_a_gateway_a_caller_is_told_to_come_again(tmp_path: Path) -> None:
    with edge(edge_config(tmp_path, tmp_path / "none.sock", MCP)) as alone:
        answer = asked(alone, access_token())
    assert (answer.status_code, "retry-after" in answer.headers) == (503, True)
    assert "www-authenticate" not in answer.headers


def test_an_edge_with_callers_ends_by_a_signal(gate: Gateway, tmp_path: Path) -> None:
    with edge(edge_config(tmp_path, gate.ready["client_socket"], MCP)) as ending:
        assert asked(ending, access_token(jti="last")).status_code == 200
        assert ending.stop() == 0
