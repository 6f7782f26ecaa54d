"""Two long-lived gateways for all rows that break nothing: the merged dev address, and production on Unix sockets."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from tests.conformance.deployment import MODES, Caller, Deployment, deployment, share_modules
from tests.conformance.stories import STORIES, Drain, Outage, Restart, Strangers, live_through_outage
from tests.support.upstream import Upstream, upstream


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "row(id): the row of the contract that the test proves")


@pytest.fixture(scope="package")
def up() -> Iterator[Upstream]:
    """The upstream that the example actions speak to; only a dev gateway reaches it."""
    with upstream() as server:
        yield server


@pytest.fixture(scope="package")
def dev(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """The shared dev gateway."""
    with deployment("dev", tmp_path_factory.mktemp("dev"), upstream=up.address) as running:
        yield running


@pytest.fixture(scope="package")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """The shared production gateway."""
    with deployment("run", tmp_path_factory.mktemp("run")) as running:
        yield running


@pytest.fixture(scope="module", params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    """Which kind of gateway a test speaks to."""
    return str(request.param)


@pytest.fixture(scope="module")
def gate(mode: str, request: pytest.FixtureRequest) -> Deployment:
    """The shared gateway of this kind: to be left as it was found."""
    found: Deployment = request.getfixturevalue(mode)
    return found


@pytest.fixture
def agent(gate: Deployment) -> Caller:
    """A fresh lease."""
    return gate.agent()


@pytest.fixture
def operator(gate: Deployment) -> Caller:
    """The operator."""
    return gate.operator()


# ------------------------------------------------------------------------------------------------ stories

Lived = Callable[[str, str], Any]


@pytest.fixture(scope="package")
def lived(up: Upstream, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Lived]:
    """Stories by name and kind of gateway, each lived through once; their gateways run to the end of the package."""
    told: dict[tuple[str, str], Any] = {}
    with ExitStack() as stack:

        def live(name: str, mode: str) -> Any:
            if (name, mode) not in told:
                start = partial(deployment, mode, upstream=up.address)
                folder = tmp_path_factory.mktemp(f"{name}-{mode}") / "gate"
                share_modules(request.getfixturevalue(mode), folder)
                try:
                    told[name, mode] = stack.enter_context(STORIES[name](start, mode, folder))
                except Exception as error:  # it would go wrong in the same way for every row that asks
                    told[name, mode] = error
            found = told[name, mode]
            if isinstance(found, Exception):
                raise AssertionError(f"the story {name} of {mode} went wrong") from found
            return found

        yield live


@pytest.fixture(scope="package")
def outages() -> dict[str, Outage]:
    """By kind of gateway; filled by whoever asks first."""
    return {}


@pytest.fixture(scope="module")
def outage(gate: Deployment, outages: dict[str, Outage]) -> Outage:
    """What the shared gateway said without its policy engine."""
    if gate.mode not in outages:
        outages[gate.mode] = live_through_outage(gate)
    return outages[gate.mode]


@pytest.fixture(scope="module")
def restart(mode: str, lived: Lived) -> Restart:
    """A gateway after a restart."""
    found: Restart = lived("restart", mode)
    return found


@pytest.fixture(scope="module")
def drain(mode: str, lived: Lived) -> Drain:
    """A gateway that drains."""
    found: Drain = lived("drain", mode)
    return found


@pytest.fixture(scope="module")
def unknown(mode: str, lived: Lived) -> Strangers:
    """A gateway that does not know this user."""
    found: Strangers = lived("strangers", mode)
    return found
