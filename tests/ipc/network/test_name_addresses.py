"""The addresses that a name has."""

import pytest

from ipc.network.name_addresses import MAX_ADDRESSES, numeric_addresses
from tests.support.names import SERVICE, resolve_to


def test_each_address_of_a_name_is_returned_once_in_the_resolvers_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolve_to(monkeypatch, "::1", "127.0.0.1", "::1")
    assert numeric_addresses(SERVICE, 1) == ("::1", "127.0.0.1")
    assert numeric_addresses("127.0.0.2", 1) == ("127.0.0.2",)
    resolve_to(monkeypatch, *(f"127.0.1.{number}" for number in range(9)))
    assert numeric_addresses(SERVICE, 1) == tuple(f"127.0.1.{number}" for number in range(MAX_ADDRESSES))
