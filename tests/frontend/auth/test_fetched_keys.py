"""Keys that a front keeps of an issuer: which tokens wait for the broker, and how long a set serves."""

import json
from dataclasses import dataclass, field

import pytest
import trio
import trio.testing

from frontend.auth.fetched_keys import FRESH_SECONDS, KEPT_SECONDS, MAX_WAITING, FetchedKeys
from frontend.broker.client import BrokerSilent
from frontend.errors import GateError
from ipc.messages.brokering import KeysGiven
from tests.support.http_socket import until


def a_set(*kids: str) -> bytes:
    return json.dumps({"keys": [{"kty": "EC", "kid": kid} for kid in kids]}).encode()


@dataclass
class ScriptedBroker:
    kids: tuple[str, ...] = ("a",)
    now: float = 1000.0
    problem: str | None = None
    may_answer: trio.Event = field(default_factory=trio.Event)
    asked: list[bool] = field(default_factory=list)
    """`is_unknown` of each question."""

    async def keys(self, url: str, *, issuer: str, newer_than: float, is_unknown: bool) -> KeysGiven:
        self.asked.append(is_unknown)
        assert (url, issuer) == ("https://login.example/keys", "corp")
        await self.may_answer.wait()
        if self.problem is not None:
            raise BrokerSilent(self.problem)
        assert self.now > newer_than
        return KeysGiven(1, a_set(*self.kids), self.now)


@pytest.fixture
def broker() -> ScriptedBroker:
    made = ScriptedBroker()
    made.may_answer.set()
    return made


@pytest.fixture
def keys(broker: ScriptedBroker) -> FetchedKeys:
    return FetchedKeys(broker, "corp", "https://login.example/keys", lambda: broker.now)


async def kids(keys: FetchedKeys, kid: str | None) -> list[str]:
    return [one["kid"] for one in await keys.fitting(kid, "ES256")]


async def is_unavailable(keys: FetchedKeys, kid: str) -> bool:
    with pytest.raises(GateError) as refused:
        await keys.fitting(kid, "ES256")
    return (refused.value.code, refused.value.retry_after) == ("identity_provider_unavailable", 5)


async def test_a_set_that_was_fetched_for_this_token_is_not_fetched_twice(
    broker: ScriptedBroker, keys: FetchedKeys
) -> None:
    assert await kids(keys, "b") == ["a"]
    assert broker.asked == [False]
    broker.now, broker.kids = broker.now + 1, ("a", "b")
    assert await kids(keys, "b") == ["a", "b"]
    assert await kids(keys, "a") == ["a", "b"]
    assert broker.asked == [False, True]


async def test_a_token_of_a_known_key_waits_for_nothing_while_others_wait_and_few_do(
    broker: ScriptedBroker, keys: FetchedKeys
) -> None:
    await kids(keys, "a")
    broker.now, broker.may_answer, broker.problem = broker.now + 1, trio.Event(), "down"
    async with trio.open_nursery() as nursery:
        for number in range(MAX_WAITING + 1):
            nursery.start_soon(is_unavailable, keys, f"bad-{number}")
        await trio.testing.wait_all_tasks_blocked()
        assert await kids(keys, "a") == ["a"]
        assert await is_unavailable(keys, "one more")
        assert broker.asked == [False, True], "one question is open at a time"
        broker.may_answer.set()


async def test_an_old_set_is_fetched_anew_while_it_serves_and_one_that_is_too_old_verifies_nothing(
    broker: ScriptedBroker, keys: FetchedKeys
) -> None:
    await kids(keys, "a")
    broker.now += FRESH_SECONDS + 1
    broker.problem = "down"
    assert await kids(keys, "a") == ["a"]
    await until(lambda: broker.asked == [False, False])
    assert await kids(keys, "a") == ["a"]
    broker.now += KEPT_SECONDS
    assert await is_unavailable(keys, "a")
    broker.problem = None
    assert await kids(keys, "a") == ["a"]
