"""A gateway that the tests of one module have for themselves, because they break it, count all it did or configure
it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Literal

import pytest

from tests.support.gateway import Gateway, config_for, gateway
from tests.support.manifests import open_policy, patient, write_manifests
from tests.support.upstream import Upstream


def own_gateway(
    config: str = "", *manifests: dict[str, Any], scope: Literal["function", "module", "session"] = "module",
    flags: Sequence[str] = (), is_spared: bool = False, **changes: Any,
) -> Any:  # fmt: skip
    """A fixture: a gateway before the upstream `up`, whose calls may take as long as they like.

    `config` is added to its configuration, keys before tables, and `manifests` to the examples, of which some have
    `changes`. With `is_spared` the test must leave it as it was.
    """

    @pytest.fixture(scope=scope)
    def running(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
        folder = tmp_path_factory.mktemp("gate")
        top = patient(folder / "actions", **changes)
        if manifests:
            write_manifests(folder / "actions", *manifests)
            top += f'policy_dir = "{open_policy(folder / "policy", *(one["action_id"] for one in manifests))}"\n'
        with (
            gateway(folder, config_for(up.address, top + config), flags=flags) as made,
            spared(made) if is_spared else nullcontext(),
        ):
            yield made

    return running


@contextmanager
def spared(gate: Gateway) -> Iterator[None]:
    """Afterwards the gateway has the same front as before, and no unexpected error in its log."""
    front, before = gate.child("front").pid, len(gate.log.read_text())
    yield
    assert gate.child("front").pid == front
    assert "Traceback" not in gate.log.read_text()[before:]
