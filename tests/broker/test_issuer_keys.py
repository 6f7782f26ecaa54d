"""Keys of issuers that the broker keeps: when an address is asked again, and what many questions cost."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio
import trio.testing

from broker.connecting import ServerAnswer
from broker.issuer_keys import MAX_ADDRESSES, RETRY_SECONDS, UNKNOWN_SECONDS, IssuerKeys, NoKeys, fetch_keys
from ipc.keys.key_sets import MAX_KEYS
from ipc.messages.brokering import AskKeys

URL = "https://login.test/keys"


@dataclass
class Issuer:
    """Each answer is another set; one second long."""

    asked: list[str] = field(default_factory=list)
    problem: str | None = None

    async def fetch(self, url: str, _: float) -> bytes:
        self.asked.append(url)
        number = len(self.asked)
        await trio.sleep(1)
        if self.problem is not None:
            raise NoKeys(self.problem)
        return b"set %d" % number


class Asker:
    """A front that keeps the last set."""

    def __init__(self, keys: IssuerKeys) -> None:
        self._keys = keys
        self.newest = -1.0

    async def ask(self, *, is_unknown: bool = False, url: str = URL) -> str:
        try:
            given = await self._keys.keys(AskKeys(1, "issuer corp", 9.0, url, self.newest, is_unknown))
        except NoKeys as error:
            return str(error)
        self.newest = given.fetched_at
        return given.keys.decode()


@asynccontextmanager
async def broker(issuer: Issuer) -> AsyncIterator[IssuerKeys]:
    async with trio.open_nursery() as nursery:
        yield IssuerKeys(issuer.fetch, nursery, trio.current_time)
        nursery.cancel_scope.cancel()


def run_in_mock_time(work: object) -> None:
    trio.run(work, clock=trio.testing.MockClock(autojump_threshold=0))  # type: ignore[arg-type]


def test_unknown_keys_bring_about_one_fetch_in_a_minute_beside_the_first_one() -> None:
    async def work() -> None:
        issuer = Issuer()
        async with broker(issuer) as keys:
            front, other = Asker(keys), Asker(keys)
            assert await front.ask() == "set 1"
            assert await front.ask(is_unknown=True) == "set 2"
            for _ in range(50):
                assert await front.ask(is_unknown=True) == "set 2"
            assert await other.ask(is_unknown=True) == "set 2", "another front sees the newest set"
            assert len(issuer.asked) == 2
            await trio.sleep(UNKNOWN_SECONDS)
            assert await other.ask(is_unknown=True) == "set 3"
            assert await front.ask(is_unknown=True) == "set 3"
            assert len(issuer.asked) == 3

    run_in_mock_time(work)


def test_an_unknown_key_while_its_issuer_is_down_gets_the_reason_and_the_kept_set_stays() -> None:
    async def work() -> None:
        issuer = Issuer()
        async with broker(issuer) as keys:
            front = Asker(keys)
            assert await front.ask() == "set 1"
            issuer.problem = "down"
            assert await front.ask(is_unknown=True) == "down"
            assert await front.ask(is_unknown=True) == "down"
            assert len(issuer.asked) == 2
            assert await Asker(keys).ask() == "set 1", "a fresh front gets the set that is kept"
            issuer.problem = None
            await trio.sleep(UNKNOWN_SECONDS)
            assert await front.ask(is_unknown=True) == "set 3"

    run_in_mock_time(work)


def test_an_issuer_that_gave_no_keys_is_left_alone_for_a_while() -> None:
    async def work() -> None:
        issuer = Issuer(problem="down")
        async with broker(issuer) as keys:
            front = Asker(keys)
            for _ in range(3):
                assert await front.ask() == "down"
            assert len(issuer.asked) == 1
            issuer.problem = None
            await trio.sleep(RETRY_SECONDS)
            assert await front.ask() == "set 2"

    run_in_mock_time(work)


def test_many_questions_at_once_share_one_fetch_and_one_that_ends_cuts_no_other() -> None:
    async def work() -> None:
        issuer = Issuer()
        told: list[str] = []
        async with broker(issuer) as keys, trio.open_nursery() as nursery:

            async def ask(seconds: float) -> None:
                with trio.move_on_after(seconds):
                    told.append(await Asker(keys).ask())

            nursery.start_soon(ask, 0.5)
            for _ in range(20):
                nursery.start_soon(ask, 5)
        assert (told, len(issuer.asked)) == (["set 1"] * 20, 1)

    run_in_mock_time(work)


def test_one_issuer_that_hangs_holds_up_no_other_and_addresses_are_bounded() -> None:
    async def work() -> None:
        issuer = Issuer()
        async with broker(issuer) as keys, trio.open_nursery() as nursery:
            hanging = trio.Event()

            async def fetch(url: str, seconds: float) -> bytes:
                if url == URL:
                    await hanging.wait()
                return await issuer.fetch(url, seconds)

            keys._fetch = fetch
            nursery.start_soon(Asker(keys).ask)
            for number in range(MAX_ADDRESSES + 5):
                assert (await Asker(keys).ask(url=f"{URL}/{number}")).startswith("set ")
            assert len(keys._addresses) == MAX_ADDRESSES
            hanging.set()

    run_in_mock_time(work)


KEY = {"kty": "EC", "kid": "e"}


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, {"keys": [KEY]}, None),
        (302, {"keys": [KEY]}, "the issuer answered 302"),
        (500, {"keys": [KEY]}, "the issuer answered 500"),
        (200, [], "the issuer's answer is no JWK set"),
        (200, {"keys": [KEY | {"d": "x"}]}, "the issuer's answer holds a private key or a secret"),
        (200, {"keys": [KEY] * (MAX_KEYS + 1)}, f"the issuer's answer has more than {MAX_KEYS} keys"),
    ],
)
def test_an_answer_that_is_no_set_counts_as_none(status: int, body: Any, said: str | None) -> None:
    raw = json.dumps(body).encode()

    class Told:
        async def get(self, url: str, _: dict[str, str]) -> ServerAnswer:
            await trio.lowlevel.checkpoint()
            assert url == URL
            return ServerAnswer(status, "application/json", raw)

    async def work() -> None:
        servers: Any = Told()
        if said is None:
            assert await fetch_keys(servers, URL, 5) == raw
            return
        with pytest.raises(NoKeys) as refused:
            await fetch_keys(servers, URL, 5)
        assert str(refused.value) == said

    trio.run(work)
