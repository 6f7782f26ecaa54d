"""Commands that name a dev gateway by its state directory, and leave out the configuration that it was started with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.process.exits import Exit
from tests.support.checked import gateway as command
from tests.support.gateway import Gateway, gateway
from tests.support.manifests import example, open_policy, write_manifests

EXPLAIN = ("policy", "explain", "--principal", "dev:anonymous", "--action", "text_digest")


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder: Path = tmp_path_factory.mktemp("named")
    write_manifests(folder / "actions", example("text_digest", preview=True))
    open_policy(folder / "policy")
    with gateway(folder, 'manifests_dir = "actions"\npolicy_dir = "policy"\n') as running:
        yield running


@pytest.mark.parametrize("words", [EXPLAIN, ("actions", "rollback", "text_digest")], ids=["explain", "rollback"])
def test_no_other_manifests_and_policy_are_taken_for_those_of_the_running_gateway(
    gate: Gateway, words: tuple[str, ...]
) -> None:
    done = command(gate.log.parent, *words, "--state-dir", str(gate.state))
    assert done.returncode == Exit.USAGE, done.stdout + done.stderr
    assert "has another manifests_dir and another policy_dir. Name its configuration, too" in done.stderr


def test_with_its_configuration_a_call_of_the_running_gateway_is_explained(gate: Gateway, tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text('{"text": "a"}')
    named = ("--state-dir", str(gate.state), "--config", str(gate.log.parent / "gateway.toml"))
    done = command(gate.log.parent, *EXPLAIN, "--request", str(tmp_path / "request.json"), *named)
    assert (done.returncode, done.stdout[:7]) == (0, "ALLOWED"), done.stdout + done.stderr
