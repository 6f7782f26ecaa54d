"""The description of a row comes from the signature of its handler, and every row has one."""

import inspect
import re
from typing import Annotated, Any, cast
from urllib.parse import unquote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.api.operation import HandlerSignature
from frontend.api.route import Auth, Route
from frontend.api.routes import ROUTES
from frontend.auth.authentication import Caller, OperatorCaller
from frontend.contract.annotations import StatusCode, codes
from frontend.contract.forms import JsonBody, Query
from frontend.contract.identifiers import IDENTIFIERS
from frontend.errors import STATUS, GateError
from frontend.http.answers import Answer
from frontend.http.requests import CompleteBody, Request
from frontend.services import Services

HOW = "see frontend/api/operation.py and frontend/contract/annotations.py"


def name_of(route: Route) -> str:
    return f"{route.method} {route.path} on {'+'.join(route.sockets)}"


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_every_row_says_what_it_takes_answers_and_refuses(route: Route) -> None:
    operation = route.operation
    doc = inspect.getdoc(route.handler) or ""
    summary = doc.partition("\n\n")[0]
    assert summary.endswith("."), f"the docstring begins with one sentence; {HOW}"
    assert operation.codes is not None, f"@codes(...) is missing; {HOW}"
    assert Answer not in [kind for kinds in operation.answers.values() for kind in kinds], f"returns no type; {HOW}"
    assert list(operation.segments) == re.findall(r"{(\w+)}", route.path), "one str parameter a segment, in order"
    assert set(operation.segments) <= IDENTIFIERS.keys()


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_a_handler_asks_for_no_other_caller_than_its_row_lets_in(route: Route) -> None:
    lets_in = {Auth.LEASE: (None, Caller), Auth.OPERATOR: (None, OperatorCaller)}
    assert route.operation.caller in lets_in.get(route.auth, (None,))


# ------------------------------------------------------------------ how handlers are called


class Wish(Query, frozen=True, kw_only=True):
    """A parameter."""

    limit: int = 5


class Gift(JsonBody, frozen=True, kw_only=True):
    """A member."""

    name: str


class Thanks(msgspec.Struct, frozen=True):
    """An answer."""

    words: list[str]


class Regrets(msgspec.Struct, frozen=True):
    """Another summary."""


class Unread:
    """A body that must not be read."""

    length = 1

    async def read(self, cap: int) -> bytes:
        raise AssertionError("read")


SERVICES: Services = cast(Services, object())


async def answered(operation: HandlerSignature, *segments: str, query: str = "", body: Any = b"") -> Answer:
    source = Unread() if body is None else CompleteBody(body)
    return await operation.answer(SERVICES, Request("POST", "/", query, body=source), None, segments)


async def test_a_handler_gets_what_it_asks_for_by_type_and_segments_by_their_order() -> None:
    async def handler(first: str, gift: Gift, services: Services, second: str, wish: Wish, request: Request) -> Thanks:
        assert services is SERVICES
        return Thanks([first, second, gift.name, str(wish.limit), request.path])

    operation = HandlerSignature(handler)
    assert operation.segments == ("first", "second")
    answer = await answered(operation, "a", "b", query="limit=7", body=b'{"name": "c"}')
    assert (answer.status, answer.body) == (200, b'{"words":["a","b","c","7","/"]}')


async def test_an_answer_goes_out_with_the_status_of_its_type() -> None:
    async def handler(kind: str) -> Thanks | Annotated[Regrets, StatusCode(202)] | dict[str, int] | list[int]:
        by_kind: dict[str, Any] = {"thanks": Thanks([]), "regrets": Regrets(), "dict": {"a": 1}, "list": [1]}
        return by_kind[kind]  # type: ignore[no-any-return]

    operation = HandlerSignature(handler)
    assert [(await answered(operation, kind)).status for kind in ("thanks", "regrets", "dict", "list")] == [
        200, 202, 200, 200,
    ]  # fmt: skip
    assert operation.answers == {200: [Thanks, dict[str, int], list[int]], 202: [Regrets]}


async def test_a_body_that_nobody_asks_for_is_not_read_and_none_is_before_the_query_is_right() -> None:
    async def without() -> Thanks:
        return Thanks([])

    async def both(_wish: Wish, _gift: Gift) -> Thanks:
        return Thanks([])

    assert (await answered(HandlerSignature(without), body=None, query="x=1")).status == 200
    with pytest.raises(GateError, match="invalid_request"):
        await answered(HandlerSignature(both), query="x=1", body=None)
    with pytest.raises(GateError, match="invalid_request"):
        await answered(HandlerSignature(without, is_strict=True), query="x=1", body=None)
    with pytest.raises(GateError, match="body_too_large"):
        await answered(HandlerSignature(both), body=b" " * 65_537)


def test_a_signature_that_nothing_could_fill_is_a_mistake_at_once() -> None:
    async def handler(_services: Services, _number: int) -> Thanks:
        return Thanks([])

    with pytest.raises(TypeError, match="nothing fills _number"):
        HandlerSignature(handler)
    with pytest.raises(KeyError):
        codes("no_such_code")


# ------------------------------------------------------------------ identifiers in paths


@given(
    st.sampled_from(sorted(IDENTIFIERS)),
    st.text(max_size=10) | st.from_regex(r"[a-z:@*%0-9A-F.-]{0,300}", fullmatch=True),
)
def test_an_identifier_is_plain_whatever_the_path_says(name: str, segment: str) -> None:
    kind = IDENTIFIERS[name]
    code = identifier = ""
    try:
        identifier = kind.read(segment)
    except GateError as error:
        code = error.code
    if code:
        assert (code, STATUS[code]) == (kind.code, 404)
    else:
        assert re.fullmatch(r"\*|[A-Za-z0-9][A-Za-z0-9._:@-]{0,255}", identifier)
        assert identifier == segment or (name == "principal" and unquote(segment) == identifier)
        assert name == "principal" or not set(identifier) & set("*:@")
