"""Two long-lived gateways for all rows that break nothing: production on Unix sockets, and the merged dev address.

A row runs against production alone unless the mode decides its outcome or its test needs an upstream on this machine.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.conformance.deployment import MODES, Caller, Deployment, deployment
from tests.conformance.outages import Outage
from tests.conformance.proxied import Proxied, proxied_deployment
from tests.conformance.stories import Drain, Restart, Story, Strangers, live
from tests.support.upstream import Upstream, upstream


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "row(ids): the rows of the contract that the test proves")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that ask for a story come after all others of this folder: meanwhile it happens."""
    here = Path(__file__).parent
    places = [place for place, item in enumerate(items) if item.path.parent == here]
    ours = sorted((items[place] for place in places), key=asks_for_a_story)
    for place, item in zip(places, ours, strict=True):
        items[place] = item


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
    folder = tmp_path_factory.mktemp("run")
    with deployment("run", folder) as running:
        yield running


@pytest.fixture(scope="module", params=["run"])
def mode(request: pytest.FixtureRequest) -> str:
    """The kind of gateway that a test speaks to: production, unless a mark says otherwise."""
    return str(request.param)


@pytest.fixture(scope="module")
def gate(mode: str, request: pytest.FixtureRequest) -> Deployment:
    """The shared gateway of this kind: to be left as it was found."""
    shared: Deployment = request.getfixturevalue(mode)
    return shared


@pytest.fixture
def agent(gate: Deployment) -> Caller:
    """A fresh lease."""
    return gate.agent()


@pytest.fixture
def operator(gate: Deployment) -> Caller:
    """The operator."""
    return gate.operator()


# ------------------------------------------------------------------------------------------------ an egress proxy


@pytest.fixture(scope="package")
def behind_proxies(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator["Behind"]:
    """A gateway of each kind whose actions go out through a real squid, started at the first request for it."""
    made: dict[str, Proxied] = {}
    with ExitStack() as stack:

        def behind(mode: str) -> Proxied:
            if mode not in made:
                folder = tmp_path_factory.mktemp(f"proxied-{mode}")
                made[mode] = stack.enter_context(proxied_deployment(mode, folder, up))
            return made[mode]

        yield behind


Behind = Callable[[str], Proxied]


@pytest.fixture(scope="module")
def proxied(mode: str, behind_proxies: Behind) -> Proxied:
    """The gateway of this kind that has an egress proxy."""
    return behind_proxies(mode)


# ------------------------------------------------------------------------------------------------ stories

STORIED = {"restart", "outage", "drain", "unknown"}
"""Fixtures that tell of a gateway with a story."""
STORY_SECONDS = 900

Lived = Callable[[str], Story]


def asks_for_a_story(item: pytest.Item) -> bool:
    """Whether a test is about what happened to a gateway of its own."""
    return bool(STORIED & set(getattr(item, "fixturenames", ())))


def modes_of_stories(items: list[pytest.Item]) -> list[str]:
    """The kinds of gateway whose story some test of this folder asks for."""
    ours = (item for item in items if item.path.parent == Path(__file__).parent and asks_for_a_story(item))
    modes = {item.callspec.params["mode"] for item in ours}  # type: ignore[attr-defined]
    return [mode for mode in MODES if mode in modes]


@pytest.fixture(scope="package", autouse=True)
def lived(up: Upstream, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Lived]:
    """The story of each kind of gateway, lived through once and in the background: most of it is waiting."""
    folders = {mode: tmp_path_factory.mktemp(f"story-{mode}") for mode in modes_of_stories(request.session.items)}
    with ThreadPoolExecutor(max_workers=1) as background:
        told = {
            mode: background.submit(live, partial(deployment, mode, upstream=up.address), mode, folder)
            for mode, folder in folders.items()
        }
        try:
            yield lambda mode: told[mode].result(STORY_SECONDS)
        finally:
            background.shutdown(wait=False, cancel_futures=True)


@pytest.fixture(scope="module")
def outage(mode: str, lived: Lived) -> Outage:
    """The answers of a gateway without its policy engine."""
    return lived(mode).outage


@pytest.fixture(scope="module")
def restart(mode: str, lived: Lived) -> Restart:
    """The observations after a restart."""
    return lived(mode).restart


@pytest.fixture(scope="module")
def drain(mode: str, lived: Lived) -> Drain:
    """The observations of a drain."""
    return lived(mode).drain


@pytest.fixture(scope="module")
def unknown(mode: str, lived: Lived) -> Strangers:
    """The answers of a gateway that does not know this user."""
    return lived(mode).strangers
