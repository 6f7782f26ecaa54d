"""Files and folders that are replaced beside ledger or keys while the gateway runs are refused with the cause and the
mend, since their modes and owner are right."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.gateway import Gateway
from tests.support.manifests import example, open_policy, write_manifests
from tests.support.manifests_over_time import command, has_copies
from tests.support.production import mapping, production

MEND = "it was made or replaced after the start, beside ledger or keys: restart the gateway (docs/isolation.md)"


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Manifests, policy and secrets lie in one folder with keys and state, as `gateway init --production` has it."""
    root: Path = tmp_path_factory.mktemp("beside")
    write_manifests(root / "actions", example("http_post"))
    open_policy(root / "policy")
    secrets = root / "secrets.json"
    secrets.touch(0o600)
    secrets.write_text('{"upstream_token": "the first token"}')
    top = f'manifests_dir = "{root / "actions"}"\npolicy_dir = "{root / "policy"}"\n'
    tables = f'{mapping(os.geteuid(), "dev:anonymous")}\n[secrets]\nfile = "{secrets}"\n'
    with production(root, top, tables) as running:
        has_copies(running, "http_post")
        yield running


def replaced(place: Path) -> None:
    """Put another file or folder with the same content, owner and mode in this place."""
    aside = place.with_name(f"{place.name}.new")
    (shutil.copytree if place.is_dir() else shutil.copy2)(place, aside)
    place.rename(place.with_name(f"{place.name}.old"))
    aside.rename(place)


def test_a_secrets_file_that_was_replaced_is_refused_with_the_mend(gate: Gateway) -> None:
    replaced(gate.state.parent / "secrets.json")
    answer = gate.agent().execute("http_post", {"path": "notes", "message": "hello"})
    assert (answer.status_code, answer.json()) == (503, {"error": "secrets_unavailable"})
    (event,) = gate.events(event_type="ActionCall", decision="error")
    assert event["reason"].endswith(f"secrets.json: Permission denied; {MEND}")


@pytest.mark.parametrize("name", ["actions", "policy"])
def test_a_folder_that_was_replaced_refuses_a_reload_with_the_mend(gate: Gateway, name: str) -> None:
    place = gate.state.parent / name
    replaced(place)
    try:
        refused = command(gate, "reload")
    finally:
        shutil.rmtree(place)
        place.with_name(f"{name}.old").rename(place)
    assert refused.returncode == 1
    assert f"Permission denied; {MEND}" in refused.stdout
    assert command(gate, "reload").returncode == 0
