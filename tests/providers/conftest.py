"""Fixtures for the tests of providers: components compiled once a session, called by name."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.provider_host import Host, Outcome, Providers

ROOT = Path(__file__).resolve().parents[2]
Call = Callable[..., Outcome]


@pytest.fixture(scope="session")
def providers() -> Providers:
    """The compiled components of this session."""
    return Providers()


@pytest.fixture
def host() -> Host:
    """A fresh host."""
    return Host()


@pytest.fixture
def call(providers: Providers, host: Host) -> Call:
    """`call("http", request, fuel=…, memory_mb=…)`: one call of a built-in provider or of a probe, on `host`."""

    def run(name: str, request: object, *, fuel: int = 10**10, memory_mb: int = 64) -> Outcome:
        return providers.call(module(name), request, host, fuel=fuel, memory_mb=memory_mb)

    return run


def module(name: str) -> Path:
    """Where the component of a built-in provider or probe lies."""
    folder = "tests/providers/fixtures" if name.endswith("_probe") else "workers/providers"
    return ROOT / folder / f"{name}.wasm"
