"""The measures read from processes and from strace's tables."""

import pytest

from bench.__main__ import duration_us, options
from bench.measures import quantile, spent
from bench.system_calls import parse


def test_a_process_that_started_meanwhile_counts_whole_and_kinds_are_summed() -> None:
    before = {1: ("front", 2.0), 2: ("worker compute", 1.0), 4: ("worker compute", 9.0)}
    after = {1: ("front", 2.5), 2: ("worker compute", 1.25), 3: ("worker compute", 0.5)}
    assert spent(before, after) == {"front": 0.5, "worker compute": 0.75}


def test_a_quantile_is_one_of_the_values() -> None:
    assert [quantile([1.0, 2.0, 3.0, 4.0], part) for part in (0.0, 0.5, 0.99)] == [1.0, 3.0, 4.0]
    assert quantile([], 0.5) == 0.0


def test_calls_are_read_from_the_table_of_strace_with_and_without_errors() -> None:
    table = """% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 58.33    0.000700           7        90        12 futex
 41.67    0.000500           5        91           fdatasync
------ ----------- ----------- --------- --------- ----------------
100.00    0.001200           6       181        12 total
"""
    assert parse(table) == {"futex": 90, "fdatasync": 91}


@pytest.mark.parametrize(("text", "microseconds"), [("2ms", 2000), ("500us", 500), ("1s", 1_000_000), ("0", 0)])
def test_a_duration_has_a_unit(text: str, microseconds: int) -> None:
    assert duration_us(text) == microseconds


@pytest.mark.parametrize("text", ["2", "ms", "-1ms", "1 ms"])
def test_a_duration_without_a_unit_is_refused(text: str) -> None:
    with pytest.raises(SystemExit):
        options(["--slow-disk", text])


def test_several_fronts_are_named_in_one_option() -> None:
    assert options(["--fronts", "1,2,4"]).fronts == (1, 2, 4)
