"""The trace of a delivery, for the log."""

import pytest

from frontend.webhooks.sender import trace_of
from notary.ledger.message import body_of
from tests.notary.samples import make_event


def test_the_trace_of_a_body_is_found_again() -> None:
    assert trace_of(body_of(make_event(trace_id="trc_7"), "action.denied", "0.1.0")) == "trc_7"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"data":3}', '{"data":{}}', '{"data":{"trace_id":7}}', "null"])
def test_what_is_no_body_has_no_trace(text: str) -> None:
    assert trace_of(text) is None
