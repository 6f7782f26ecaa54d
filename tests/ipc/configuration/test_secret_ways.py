"""The ways of a secret: what stands in a request for a value, and what an operator reads."""

import pytest

from ipc.configuration.secret_ways import AnySecretWay, AsHeader, AsParameter, AsPassword, AsToken


@pytest.mark.parametrize(
    ("way", "text", "place", "shown", "named"),
    [
        (AsHeader("X-Key", "k={value}"), "k=a&b +", ("X-Key", None), "as header X-Key", "k=<secret x>"),
        (AsParameter("key"), "key=a%26b%20%2B", (None, "key"), "as query parameter key", "key=<secret x>"),
        (
            AsPassword("alice"),
            "Basic YWxpY2U6YSZiICs=",
            ("Authorization", None),
            "as basic user alice",
            "Basic alice:<secret x>",
        ),
        (
            AsToken("https://login.test/token?tenant=1", "client"),
            "Bearer a&b +",
            ("Authorization", None),
            "as a token of https://login.test/token",
            "Bearer <token by secret x>",
        ),
    ],
)
def test_each_way_says_where_a_value_stands_in_which_form_and_how_it_is_shown(
    way: AnySecretWay, text: str, place: tuple[str | None, str | None], shown: str, named: str
) -> None:
    assert way.text("a&b +") == text
    assert (way.header_name, way.parameter_name) == place
    assert way.shown == shown
    assert way.named("x") == named
