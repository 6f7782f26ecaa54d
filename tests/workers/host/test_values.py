"""The arguments that a guest passes to a host function: how much of them the function sees, and how the rest is
handled."""

import gc

import psutil
import pytest

from ipc.messages.calling import Result
from tests.support.hostile_modules import wasm
from tests.support.worker_plans import http_plan
from tests.support.worker_runner import Bench
from workers.host.values import MAX_ITEMS


def sent(bench: Bench, headers: int) -> Result:
    """A request with so many headers, all of them empty."""
    text = wasm("http_many_headers")
    assert text.count(TWENTY_THOUSAND) == 1
    changed = text.replace(TWENTY_THOUSAND, b"\x41" + _signed(headers))
    return bench.run(http_plan("upstream.gateway.test", provider_module_digest=bench.add(changed)))


def _signed(number: int) -> bytes:
    """Three bytes of LEB128."""
    return bytes([number & 0x7F | 0x80, number >> 7 & 0x7F | 0x80, number >> 14 & 0x7F])


TWENTY_THOUSAND = b"\x41" + _signed(20_000)


@pytest.mark.parametrize(
    ("headers", "outcome", "said"),
    [
        (MAX_ITEMS, "host_io", "too many headers"),
        (MAX_ITEMS + 1, "trap", f"more than {MAX_ITEMS} items"),
        (30_000, "trap", f"more than {MAX_ITEMS} items"),
    ],
)
def test_a_list_that_is_too_long_traps_before_the_function_sees_it(
    bench: Bench, headers: int, outcome: str, said: str
) -> None:
    result = sent(bench, headers)
    assert result.outcome == outcome
    assert result.failure is not None
    assert said in result.failure.message
    assert result.io_calls == (outcome == "host_io")


@pytest.mark.large
def test_nothing_is_kept_of_a_list_that_is_too_long(bench: Bench) -> None:
    sent(bench, 20_000)
    gc.collect()
    before = psutil.Process().memory_info().rss
    for _ in range(30):
        assert sent(bench, 20_000).outcome == "trap"
    assert psutil.Process().memory_info().rss - before < 20_000_000
