"""Forms: what fits is taken, what does not is refused with the field and the mend, and never with the value."""

import json
from typing import Annotated, Literal

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from frontend.api.openapi.schemas import components_of
from frontend.contract.calls import CallsQuery
from frontend.contract.forms import JsonBody, Moment, Query, StoredText, parse_body, parse_query
from frontend.contract.learned import OfAction
from frontend.contract.leases import LeaseRequest
from frontend.contract.sessions import SessionsQuery
from frontend.errors import GateError
from tests.support.proofs import Key


class Wanted(Query, frozen=True, kw_only=True):
    """Some of everything."""

    limit: Annotated[int, Meta(ge=1, le=200)] = 50
    colour: Literal["red", "blue"] | None = None
    after: Moment | None = None
    name: str | None = None
    trace: StoredText | None = None
    tags: Annotated[dict[Annotated[str, Meta(min_length=2)], str], Meta(extra={"must": "tags"})] = {}  # noqa: RUF012


class Inner(msgspec.Struct, frozen=True):
    """A member of a member."""

    many: Annotated[int, Meta(ge=1, le=9)]


class Form(JsonBody, frozen=True, kw_only=True):
    """Some of everything."""

    name: str
    items: Annotated[list[Annotated[str, Meta(max_length=3)]], Meta(min_length=1, max_length=2)] = []  # noqa: RUF012
    inner: Inner | None = None
    colour: Literal["red", "blue"] = "red"
    loud: bool = False


def test_a_query_becomes_its_struct() -> None:
    query = parse_query(Wanted, "limit=7&colour=blue&after=1970-01-01T00:01:00Z&name=a%20b")
    assert query == Wanted(limit=7, colour="blue", after=60.0, name="a b")
    assert parse_query(Wanted, "") == Wanted()
    assert parse_query(Wanted, "name=") == Wanted(name="")
    assert parse_query(Wanted, "tags.a.b=1&tags.%2Fc=") == Wanted(tags={"a.b": "1", "/c": ""})


WHOLE = "limit: must be a whole number from 1 to 200"
TIME = "after: must be an ISO 8601 time such as 2026-01-31T12:00:00Z"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        *((f"limit={text}", WHOLE) for text in ("0", "201", "-1", "1.0", "1e1", "ten", "", "%D9%A5", "9" * 99, " 1")),
        ("colour=green", "colour: must be one of blue, red"),
        ("colour=", "colour: must be one of blue, red"),
        ("after=yesterday", TIME),
        ("after=", TIME),
        ("after=2026-13-01T00:00:00Z", TIME),
        ("limit=1&limit=2", "limit: given twice"),
        ("size=1", "unknown query parameter; known are: limit, colour, after, name, trace, tags.<member>"),
        ("Limit=1", "unknown query parameter; known are: limit, colour, after, name, trace, tags.<member>"),
        (f"name={'x' * 513}", "name: longer than 512 characters"),
        ("tags=1", "unknown query parameter; known are: limit, colour, after, name, trace, tags.<member>"),
        ("name.x=1", "unknown query parameter; known are: limit, colour, after, name, trace, tags.<member>"),
        ("tags.ab=1&tags.ab=2", "tags: given twice"),
        ("tags.a=1", "tags: must be tags"),
        (f"tags.ab={'x' * 513}", "tags: longer than 512 characters"),
        ("limit", "the query string does not parse"),
        ("&", "the query string does not parse"),
        ("name=%ff", "the query string does not parse"),
        ("trace=a%00b", "trace: must be a string without a NUL character"),
        ("&".join(f"a{n}=1" for n in range(40)), "the query string does not parse"),
    ],
    ids=lambda text: text[:30],
)
def test_an_invalid_query_is_answered_with_the_valid_form(query: str, message: str) -> None:
    with pytest.raises(GateError) as caught:
        parse_query(Wanted, query)
    assert caught.value.body() == {"error": "invalid_request", "message": message}


@pytest.mark.parametrize(
    ("form", "name", "text"),
    [(CallsQuery, "after", "trc_1"), (SessionsQuery, "after", "12.3"), (OfAction, "action", "pay")],
)
def test_a_name_in_a_query_has_no_line_break_behind_it(form: type[Query], name: str, text: str) -> None:
    parse_query(form, f"{name}={text}")
    with pytest.raises(GateError, match="invalid_request"):
        parse_query(form, f"{name}={text}%0A")


def test_a_body_becomes_its_struct() -> None:
    form = parse_body(Form, b' {"name": "n", "inner": {"many": 3}, "items": ["a", "b"]} ')
    assert form == Form(name="n", inner=Inner(3), items=["a", "b"])
    with pytest.raises(GateError, match="invalid_request"):
        parse_body(Form, b"")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("[]", "the body must be a JSON object"),
        ("{", "the body must be a JSON object"),
        ('{"name": "a", "name": "a"}', "the body must be a JSON object"),
        ("{}", "name: is missing; must be a string"),
        ('{"name": 1}', "name: must be a string"),
        ('{"name": null}', "name: must be a string"),
        ('{"name": "a", "why": 1}', "unknown member; known are: name, items, inner, colour, loud"),
        ('{"name": "a", "items": []}', "items: must be an array from 1 to 2 items"),
        ('{"name": "a", "items": "a"}', "items: must be an array from 1 to 2 items"),
        ('{"name": "a", "items": ["a", "long text"]}', "items[1]: must be a string from 0 to 3 characters"),
        ('{"name": "a", "inner": 1}', "inner: must be an object with many"),
        ('{"name": "a", "inner": {}}', "inner.many: is missing; must be a whole number from 1 to 9"),
        ('{"name": "a", "inner": {"many": 0}}', "inner.many: must be a whole number from 1 to 9"),
        ('{"name": "a", "inner": {"many": true}}', "inner.many: must be a whole number from 1 to 9"),
        ('{"name": "a", "colour": "secret-value"}', "colour: must be one of blue, red"),
        ('{"name": "a", "loud": 1}', "loud: must be true or false"),
        ('{"name": ' + "[" * 900 + "]" * 900 + "}", "name: must be a string"),
        ('{"name": ' + "[" * 100_000 + "]" * 100_000 + "}", "the body must be a JSON object"),
    ],
    ids=lambda text: text[:40],
)
def test_an_invalid_body_is_answered_with_the_valid_form(body: str, message: str) -> None:
    with pytest.raises(GateError) as caught:
        parse_body(Form, body.encode())
    assert caught.value.body() == {"error": "invalid_request", "message": message}


values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 12) | st.sampled_from([2.0, 2.5, -0.0, 1e300]) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["many", "x"]), inner, max_size=2),
    max_leaves=4,
)
bodies = st.fixed_dictionaries(
    {"name": st.just("n") | values},
    optional={"items": values, "inner": values, "colour": st.just("blue") | values, "loud": values, "other": values},
)


def judge(kind: type[msgspec.Struct]) -> jsonschema_rs.Validator:
    """The published schema of a body."""
    schemas = components_of([kind], [])
    return jsonschema_rs.Draft202012Validator(
        {"$ref": f"#/components/schemas/{kind.__name__}", "components": {"schemas": schemas}}
    )


@given(bodies)
def test_what_is_taken_is_what_the_published_schema_takes(body: dict[str, object]) -> None:
    try:
        parse_body(Form, json.dumps(body).encode())
        is_taken = True
    except GateError:
        is_taken = False
    assert is_taken == judge(Form).is_valid(body)


GOOD_KEY = Key().jwk
scopes = st.lists(
    st.sampled_from(
        ["tools:call", "a:b", "a:bc", "x" * 63 + ":", "no", "A:bcd", ":::::", 1, "a:bc\n", "a:bc\n\n", " a:bc"]
    )
)


@given(
    st.fixed_dictionaries(
        {"scopes": scopes | values},
        optional={
            "dpop_jwk": st.just(GOOD_KEY),
            "budgets": st.fixed_dictionaries({}, optional={"max_calls": values, "other": values}) | values,
            "other": values,
        },
    )
)
def test_a_lease_request_is_taken_exactly_when_its_published_schema_takes_it(body: dict[str, object]) -> None:
    try:
        parse_body(LeaseRequest, json.dumps(body).encode())
        is_taken = True
    except GateError:
        is_taken = False
    assert is_taken == judge(LeaseRequest).is_valid(body)
