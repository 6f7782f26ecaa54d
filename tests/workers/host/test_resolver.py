"""Resolving names with a deadline."""

import socket
import threading
from typing import Any

import pytest

from workers.host.meter import HostError
from workers.host.resolver import Resolver


def started() -> Resolver:
    resolver = Resolver()
    resolver.start()
    return resolver


def test_a_name_of_the_hosts_file_resolves() -> None:
    resolver = started()
    assert "127.0.0.1" in resolver.resolve("localhost", 120)
    assert not resolver.is_stuck


def test_an_unknown_name_is_unavailable() -> None:
    with pytest.raises(HostError) as caught:
        started().resolve("no-such-name.invalid", 300)
    assert caught.value.failure.kind == "unavailable"
    assert "no-such-name" not in caught.value.failure.message


def test_a_lookup_that_hangs_ends_at_the_deadline_and_its_answer_is_not_taken_for_a_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = threading.Event()

    def lookup(host: str, *_: Any, **__: Any) -> list[Any]:
        if host == "slow.test":
            release.wait(600)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"{host}-address", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    resolver = started()
    with pytest.raises(HostError) as caught:
        resolver.resolve("slow.test", 0.1)
    assert caught.value.failure.kind == "timeout"
    assert resolver.is_stuck
    with pytest.raises(HostError):
        resolver.resolve("fast.test", 0.05)
    release.set()
    assert resolver.resolve("other.test", 120) == ["other.test-address"]
    assert not resolver.is_stuck
