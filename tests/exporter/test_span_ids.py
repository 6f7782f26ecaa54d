"""Ids of spans from the ids of calls."""

import pytest

from exporter.span_ids import call_span_id, hold_span_id, trace_id_of
from ipc.texts.identifiers import new


@pytest.mark.parametrize("text", ["", "trc_00", "trc_", "apr_019a9a3b-0000-7000-8000-0123456789ab", "trc_zz"])
def test_a_text_that_is_no_trace_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a trace id|non-hexadecimal"):
        trace_id_of(text)


def test_ids_of_the_gateway_make_span_ids_that_are_valid_and_differ() -> None:
    calls = {call_span_id(trace_id_of(new("trc_"))) for _ in range(10_000)}
    holds = {hold_span_id(new("apr_")) for _ in range(10_000)}
    assert len(calls | holds) == 20_000
    assert all(len(one) == 8 and any(one) for one in calls | holds)
