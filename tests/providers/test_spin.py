"""spin: burns what it is asked to, no more and no less."""

import pytest

from tests.providers.conftest import Call
from tests.support.provider_host import Host


@pytest.mark.parametrize("fuel", [1_000_000, 10_000_000, 100_000_000])
def test_it_burns_the_fuel_it_is_asked_to_and_at_most_20_thousand_more(fuel: int, call: Call) -> None:
    outcome = call("spin", {"fuel": fuel, "memory_mb": 0, "seconds": 0})
    assert outcome.output == {"fuel": fuel, "memory_mb": 0, "seconds": 0}
    assert fuel <= outcome.fuel <= fuel + 20_000


def test_it_runs_out_of_fuel_below_what_it_is_asked_to_burn(call: Call) -> None:
    with pytest.raises(Exception, match="fuel"):
        call("spin", {"fuel": 20_000_000}, fuel=19_000_000)


def test_it_reads_the_clock_until_the_time_has_passed(call: Call, host: Host) -> None:
    host.step = 50_000_000
    assert call("spin", {"fuel": 0, "memory_mb": 0, "seconds": 1.25}).output["seconds"] == 1.25
    assert host.looks == 1 + 1.25 / 0.05


def test_a_look_at_the_clock_takes_next_to_no_fuel(call: Call, host: Host) -> None:
    host.step = 1_000
    idle = call("spin", {}).fuel
    outcome = call("spin", {"seconds": 0.01})
    assert (outcome.fuel - idle) / 10_000 < 60


@pytest.mark.parametrize(("memory_mb", "limit"), [(1, 3), (60, 62), (200, 256)])
def test_it_grows_its_memory_within_the_limit(memory_mb: int, limit: int, call: Call) -> None:
    outcome = call("spin", {"memory_mb": memory_mb}, memory_mb=limit)
    assert outcome.output["memory_mb"] == memory_mb
    assert outcome.fuel > memory_mb * 256 * 10


@pytest.mark.parametrize("memory_mb", [32, 100, 4096, 10**12, 2**53 - 1])
def test_memory_beyond_the_limit_is_refused_before_anything_is_burnt(memory_mb: int, call: Call) -> None:
    outcome = call("spin", {"memory_mb": memory_mb, "fuel": 10**9}, memory_mb=32)
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.failure.message) == ("too-large", "memory limit")
    assert outcome.fuel < 100_000


@pytest.mark.parametrize("seconds", ["0.001", "1e-3", "0.1E-2", "0.0010000000000000000000000001", "1.000000e-3"])
def test_seconds_may_be_written_in_any_way_json_allows(seconds: str, call: Call, host: Host) -> None:
    host.step = 100_000
    call("spin", f'{{"seconds": {seconds}}}')
    assert host.looks == 1 + 10


@pytest.mark.parametrize("fuel", ["1000000", "1e6", "1000000.0", "0.1e7"])
def test_a_whole_number_may_be_written_in_any_way_json_allows(fuel: str, call: Call) -> None:
    assert 1_000_000 <= call("spin", f'{{"fuel": {fuel}}}').fuel < 1_020_000


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ('{"fuel": -1}', "fuel"), ('{"fuel": 1.5}', "fuel"), ('{"fuel": "1"}', "fuel"), ('{"fuel": null}', "fuel"),
        ('{"fuel": 1e30}', "fuel"), ('{"memory_mb": -1}', "memory_mb"), ('{"memory_mb": 0.5}', "memory_mb"),
        ('{"seconds": -0.1}', "seconds"), ('{"seconds": true}', "seconds"), ('{"seconds": 1e300}', "seconds"),
        ("[]", ""),
    ],
)  # fmt: skip
def test_what_is_no_amount_is_invalid_and_the_field_is_named(request_: str, field: str, call: Call) -> None:
    failure = call("spin", request_).failure
    assert failure is not None
    assert (failure.kind, failure.details) == ("invalid-input", {"field": field})
