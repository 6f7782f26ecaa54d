"""The load generator, against a real floor: what it says is what it did."""

import pytest

from bench.generator import generator
from bench.subjects import floor


def test_a_job_of_so_many_calls_makes_exactly_these() -> None:
    with floor("h11") as echo, generator() as load:
        figures = load.calls(echo, 1, 20.0, calls=30, warmup=0)
        assert figures["calls"] == 30
        assert figures["per_second"] > 0
        assert figures["cpu_us_all"] > 0
        assert figures["client_cpu_us"] > 0
        # Several at once: every answer is awaited, those in flight at the end too.
        assert load.calls(echo, 4, 0.05)["calls"] >= 4


def test_an_answer_that_was_not_expected_ends_the_job_and_not_the_generator() -> None:
    with floor("h11") as echo, generator() as load:
        with pytest.raises(RuntimeError, match=r"answered \{200: "):
            load.calls(echo, 2, 0.05, expect=418)
        assert load.calls(echo, 2, 0.05)["calls"] > 0
