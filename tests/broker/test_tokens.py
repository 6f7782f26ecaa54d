"""Tokens that are kept: how long each serves, for whom it was fetched, and what many questions at once cost."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec
import pytest
import trio
import trio.testing

from broker.token_server import FetchedToken, NoToken
from broker.tokens import MAX_TOKENS, REFUSED_SECONDS, RETRY_SECONDS, Tokens
from ipc.configuration.secret_ways import AsToken
from ipc.messages.brokering import AskToken, TokenGiven, digest_of

WAY = AsToken("https://login.test/token", "client", ("read",), "https://api.test")
ASKED = AskToken(1, "p", 5.0, WAY, "client-secret")


@dataclass
class TokenMaker:
    """A server of tokens: each one is new, and lives a hundred seconds."""

    asked: list[AskToken] = field(default_factory=list)
    problem: str | None = None
    seconds: float = 1.0

    async def fetch(self, asked: AskToken, _: float) -> FetchedToken:
        self.asked.append(asked)
        number = len(self.asked)
        await trio.sleep(self.seconds)
        if self.problem is not None:
            raise NoToken(self.problem)
        return FetchedToken(f"token-number-{number}", 100)


@asynccontextmanager
async def at_work(maker: TokenMaker) -> AsyncIterator[Tokens]:
    async with trio.open_nursery() as nursery:
        yield Tokens(maker.fetch, nursery)
        nursery.cancel_scope.cancel()


@pytest.fixture
def maker() -> TokenMaker:
    return TokenMaker()


def run_in_mock_time(work: object) -> None:
    trio.run(work, clock=trio.testing.MockClock(autojump_threshold=0))  # type: ignore[arg-type]


def test_many_questions_at_once_share_one_fetch_and_one_that_ends_cuts_no_other(maker: TokenMaker) -> None:
    async def work() -> None:
        async with at_work(maker) as tokens:
            got: list[str] = []

            async def ask(seconds: float) -> None:
                with trio.move_on_after(seconds):
                    got.append(await tokens.token(ASKED))

            async with trio.open_nursery() as nursery:
                for seconds in (0.1, 5.0, 5.0):
                    nursery.start_soon(ask, seconds)
            assert got == ["token-number-1"] * 2
            assert len(maker.asked) == 1

    run_in_mock_time(work)


def test_a_token_is_renewed_while_it_still_serves_and_is_never_given_after_its_end(maker: TokenMaker) -> None:
    async def work() -> None:
        async with at_work(maker) as tokens:
            assert await tokens.token(ASKED) == "token-number-1"
            await trio.sleep(79)
            assert await tokens.token(ASKED) == "token-number-1"
            assert len(maker.asked) == 1
            await trio.sleep(2)
            assert await tokens.token(ASKED) == "token-number-1", "it serves while the next one is fetched"
            await trio.sleep(2)
            assert await tokens.token(ASKED) == "token-number-2"
            maker.problem = "the token server answered 503"
            await trio.sleep(85)
            assert await tokens.token(ASKED) == "token-number-2", "a renewal that fails costs no call"
            await trio.sleep(15)
            with pytest.raises(NoToken, match="answered 503"):
                await tokens.token(ASKED)

    run_in_mock_time(work)


@pytest.mark.parametrize(
    "other",
    [
        msgspec.structs.replace(ASKED, client_secret="other-secret"),
        *(
            msgspec.structs.replace(ASKED, way=msgspec.structs.replace(WAY, **change))
            for change in (
                {"token_url": "https://login.test/other"},
                {"client_id": "other"},
                {"scopes": ("read", "write")},
                {"audience": None},
            )
        ),
    ],
)
def test_a_token_is_given_for_exactly_what_it_was_fetched_for(maker: TokenMaker, other: AskToken) -> None:
    async def work() -> None:
        async with at_work(maker) as tokens:
            assert await tokens.token(ASKED) == "token-number-1"
            assert await tokens.token(other) == "token-number-2"
            assert await tokens.token(ASKED) == "token-number-1"

    run_in_mock_time(work)


def test_a_token_that_an_upstream_has_refused_is_not_given_again(maker: TokenMaker) -> None:
    async def work() -> None:
        async with at_work(maker) as tokens:
            refused = msgspec.structs.replace(ASKED, refused=digest_of(await tokens.token(ASKED)))
            assert await tokens.token(refused) == "token-number-2"
            assert await tokens.token(refused) == "token-number-2", "the newer one is no refused one"
            assert len(maker.asked) == 2

    run_in_mock_time(work)


def test_one_who_can_bring_about_refusals_has_a_new_token_fetched_once_in_a_while_only(maker: TokenMaker) -> None:
    async def work() -> None:
        async with at_work(maker) as tokens:
            given = await tokens.token(ASKED)
            for _ in range(5):
                given = await tokens.token(msgspec.structs.replace(ASKED, refused=digest_of(given)))
            assert len(maker.asked) == 2
            await trio.sleep(REFUSED_SECONDS)
            await tokens.token(msgspec.structs.replace(ASKED, refused=digest_of(given)))
            assert len(maker.asked) == 3

    run_in_mock_time(work)


def test_a_server_that_gave_no_token_is_left_alone_a_while_and_calls_meanwhile_fail_at_once(maker: TokenMaker) -> None:
    other = msgspec.structs.replace(ASKED, client_secret="another")

    async def work() -> None:
        maker.problem = "the token server answered 503"
        async with at_work(maker) as tokens:
            for _ in range(3):
                with pytest.raises(NoToken, match="the token server answered 503"):
                    await tokens.token(ASKED)
            assert (len(maker.asked), trio.current_time()) == (1, 1.0), "only the first call waited"
            maker.problem = None
            assert await tokens.token(other) == "token-number-2", "another secret has failed with nothing"
            await trio.sleep(RETRY_SECONDS)
            assert await tokens.token(ASKED) == "token-number-3"

    run_in_mock_time(work)


def test_failures_that_are_remembered_are_bounded(maker: TokenMaker) -> None:
    async def work() -> None:
        maker.problem, maker.seconds = "the token server answered 503", 0.0
        async with at_work(maker) as tokens:
            for number in range(MAX_TOKENS + 1):
                with pytest.raises(NoToken):
                    await tokens.token(msgspec.structs.replace(ASKED, client_secret=str(number)))
            for number, asked in ((MAX_TOKENS, 0), (0, 1)):
                with pytest.raises(NoToken):
                    await tokens.token(msgspec.structs.replace(ASKED, client_secret=str(number)))
                assert len(maker.asked) == MAX_TOKENS + 1 + asked

    run_in_mock_time(work)


def test_more_tokens_than_are_kept_push_out_those_that_end_first(maker: TokenMaker) -> None:
    async def work() -> None:
        maker.seconds = 0.0
        async with at_work(maker) as tokens:
            for number in range(MAX_TOKENS + 1):
                await tokens.token(msgspec.structs.replace(ASKED, client_secret=f"secret-{number}"))
            await tokens.token(msgspec.structs.replace(ASKED, client_secret=f"secret-{MAX_TOKENS}"))
            assert len(maker.asked) == MAX_TOKENS + 1
            await tokens.token(msgspec.structs.replace(ASKED, client_secret="secret-0"))
            assert len(maker.asked) == MAX_TOKENS + 2

    run_in_mock_time(work)


def test_no_secret_shows_in_a_message() -> None:
    for message in (ASKED, TokenGiven(1, "token-number-1"), FetchedToken("token-number-1", 1)):
        assert not [text for text in ("client-secret", "token-number") if text in repr(message)]
