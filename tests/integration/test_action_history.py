"""`gateway actions history` and `rollback`: earlier manifests are listed by the digests of evidence, and come back.

All tests share a production gateway behind its walls. Each has an action of its own.
"""

import os
import socket
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from frontend.walls import FrontPlaces
from ipc.settings import Settings
from supervisor.life import asking
from tests.support.gateway import WAIT_SECONDS, Gateway, wait_for
from tests.support.manifests import PROVIDERS, example, open_policy, put_module, trust, write_manifests
from tests.support.manifests_over_time import ChangingAction, command, digest, done, has_copies
from tests.support.production import PUBLIC_URL, mapping, production

NAMES = [f"digest_{number}" for number in range(16)]
BROKEN = "action_id: ["


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds the manifests (`actions`) and the policy of `gate`."""
    root: Path = tmp_path_factory.mktemp("history")
    write_manifests(root / "actions", example("text_digest"))
    open_policy(root / "policy", *NAMES)
    return root


@pytest.fixture(scope="module")
def gate(folder: Path) -> Iterator[Gateway]:
    top = f'manifests_dir = "{folder / "actions"}"\npolicy_dir = "{folder / "policy"}"\nfront_processes = 2\n'
    with production(folder, top, mapping(os.geteuid(), "dev:anonymous")) as running:
        has_copies(running, "text_digest")
        yield running


@pytest.fixture(scope="module")
def numbers() -> Iterator[int]:
    return count()


@pytest.fixture
def action(gate: Gateway, folder: Path, numbers: Iterator[int]) -> ChangingAction:
    """An action that no other test has, in force with version 1.0.0."""
    one = ChangingAction(gate, folder / "actions", NAMES[next(numbers)])
    one.change()
    done(gate, "reload")
    return one


def last_reload(gate: Gateway) -> dict[str, Any]:
    return gate.events(event_type="AdminReload", limit=1)[0]


def test_each_load_is_listed_with_the_digests_that_evidence_names(gate: Gateway, action: ChangingAction) -> None:
    first = digest(action.place)
    second = action.change(version="1.1.0")
    done(gate, "reload")
    assert last_reload(gate)["change"] == {"manifests": {action.name: second}}
    action.place.unlink()
    done(gate, "reload")
    assert last_reload(gate)["change"] == {"manifests": {action.name: None}}
    told = action.history()
    assert [one["digest"] for one in told] == [None, second, first]
    assert [one["version"] for one in told] == ["", "1.1.0", "1.0.0"]
    assert [one["at"] for one in told] == sorted((one["at"] for one in told), reverse=True)
    table = done(gate, "actions", "history", action.name).splitlines()
    assert table[1].startswith("*")
    assert table[1].endswith("(gone)")
    assert first[7:19] in table[3]


def test_the_manifests_of_the_start_are_listed_with_the_digests_that_its_event_names(gate: Gateway) -> None:
    unchanged = ChangingAction(gate, gate.state.parent / "actions", "text_digest")
    (started,) = gate.events(event_type="GatewayStarted")
    assert started["change"] == {"manifests": {"text_digest": digest(unchanged.place)}}
    assert [one["digest"] for one in unchanged.history()] == [digest(unchanged.place)]


def test_a_rollback_brings_the_earlier_manifest_back_in_force(gate: Gateway, action: ChangingAction) -> None:
    action.place.chmod(0o640)
    before = action.place.read_bytes()
    first, second = digest(action.place), action.change(version="1.1.0")
    done(gate, "reload")
    told = done(gate, "actions", "rollback", action.name)
    assert f"{action.name}: version 1.1.0" in told
    assert "-version: 1.1.0\n+version: 1.0.0" in told
    assert (action.place.read_bytes(), action.place.stat().st_mode & 0o777) == (before, 0o640)
    assert action.called()["action_version"] == "1.0.0"
    (event,) = action.rollbacks()
    assert (event["action_version"], event["principal"]) == ("1.0.0", "command")
    assert (event["change"]["from"], event["change"]["to"]) == (second, first)
    assert event["change"]["by"].startswith("uid:")
    assert last_reload(gate)["change"] == {"manifests": {action.name: first}}
    assert [one["digest"] for one in action.history()] == [first, second, first]
    done(gate, "actions", "rollback", action.name, "--to", second[7:19])
    assert digest(action.place) == second


def test_no_front_reaches_the_copies(gate: Gateway, folder: Path) -> None:
    settings = Settings(str(gate.state), PUBLIC_URL, manifests_dir=str(folder / "actions"))
    copies = os.path.realpath(gate.state / "manifest-history")
    assert Path(copies, "index.json").exists()
    reached = [rule.path for rule in FrontPlaces(settings).all()]
    assert not [path for path in reached if copies.startswith(os.path.realpath(path) + "/")]


def test_a_rollback_would_lose_no_edit_and_changes_nothing_that_check_refuses(
    gate: Gateway, action: ChangingAction
) -> None:
    action.change(version="1.1.0")
    done(gate, "reload")
    edited = action.change(version="1.2.0")
    refused = command(gate, "actions", "rollback", action.name)
    assert (refused.returncode, digest(action.place)) == (1, edited)
    assert "has changed since it was last loaded" in refused.stderr
    second = action.change(version="1.1.0")
    broken = action.place.with_name("broken.yaml")
    broken.write_text(BROKEN)
    try:
        refused = command(gate, "actions", "rollback", action.name)
    finally:
        broken.unlink()
    assert (refused.returncode, digest(action.place)) == (78, second)
    assert str(broken) in refused.stderr
    assert not action.rollbacks()
    refused = command(gate, "actions", "rollback", action.name, "--to", "9.9.9")
    assert f"no earlier manifest of {action.name} has the version or digest 9.9.9" in refused.stderr


def test_a_rollback_says_that_the_manifest_in_force_is_in_another_file_now(
    gate: Gateway, action: ChangingAction
) -> None:
    second = action.change(version="1.1.0")
    done(gate, "reload")
    renamed = action.place.rename(action.place.with_name(f"{action.name}_renamed.yaml"))
    try:
        refused = command(gate, "actions", "rollback", action.name)
        assert (refused.returncode, action.place.exists(), digest(renamed)) == (78, False, second)
        told = f"{action.place}, which was in force, is not there any more. If another file has the action now, run"
        assert told in refused.stderr
        done(gate, "reload")
        done(gate, "actions", "rollback", action.name)
        assert action.called()["action_version"] == "1.0.0"
    finally:
        renamed.unlink()


def test_a_rollback_of_an_action_that_is_gone_says_that_its_file_has_another_one_now(
    gate: Gateway, action: ChangingAction, numbers: Iterator[int]
) -> None:
    action.place.unlink()
    done(gate, "reload")
    other = ChangingAction(gate, action.folder, NAMES[next(numbers)])
    other.change()
    other.place.rename(action.place)
    done(gate, "reload")
    refused = command(gate, "actions", "rollback", action.name)
    action.place.rename(other.place)
    assert refused.returncode == 1
    assert f"{action.place} has something else now, which would be lost. Rename that file first." in refused.stderr
    done(gate, "actions", "rollback", action.name)
    assert action.called()["action_version"] == "1.0.0"


def test_a_rollback_compares_with_what_is_in_force_also_where_its_file_is_gone(
    gate: Gateway, action: ChangingAction
) -> None:
    action.change(version="1.1.0")
    done(gate, "reload")
    action.place.unlink()
    told = done(gate, "actions", "rollback", action.name)
    assert "-version: 1.1.0\n+version: 1.0.0" in told


def test_a_rollback_brings_a_module_back_that_was_removed_and_is_no_longer_trusted(
    gate: Gateway, action: ChangingAction
) -> None:
    actions = action.place.parent
    module = put_module(actions, (PROVIDERS / "text_digest.wasm").read_bytes() + b"\x00\x05\x04test")
    trust(actions, module)
    first = action.change(provider_module_digest=module)
    done(gate, "reload")
    action.change(version="1.1.0")
    (actions / "modules" / f"{module.removeprefix('sha256:')}.wasm").unlink()
    (actions / "trusted_modules.yaml").write_text("digests: {}  # none\n")
    done(gate, "reload")
    told = done(gate, "actions", "rollback", action.name)
    assert f"{module} is trusted again" in told
    call = action.called()
    assert (call["action_version"], call["provider_module_digest"]) == ("1.0.0", module)
    assert digest(action.place) == first


def test_what_the_gateway_refuses_is_put_back(gate: Gateway, action: ChangingAction, folder: Path) -> None:
    second = action.change(version="1.1.0")
    done(gate, "reload")
    data = folder / "policy" / "data.json"
    whole = data.read_text()
    data.write_text("{")
    try:
        refused = command(gate, "actions", "rollback", action.name)
    finally:
        data.write_text(whole)
    assert refused.returncode == 1
    assert "the gateway refused it, and nothing was changed" in refused.stderr
    assert digest(action.place) == second
    assert not action.rollbacks()
    assert action.called()["action_version"] == "1.1.0"


def test_a_front_that_starts_with_other_files_than_those_in_force_leaves_an_event(
    gate: Gateway, action: ChangingAction
) -> None:  # fmt: skip
    changed = action.change(version="1.1.0")
    manifests = {path.stem: digest(path) for path in action.place.parent.glob("*digest*.yaml")}
    front, before = gate.child("front 1"), last_reload(gate)
    front.kill()
    front.wait(WAIT_SECONDS)
    wait_for(lambda: gate.is_ready() and last_reload(gate) != before, "the event of the successor")
    event = last_reload(gate)
    assert (event["principal"], event["change"]) == ("gateway", {"manifests": manifests})
    assert event["reason"] == "a front that started read other manifests than those in force"
    wait_for(lambda: action.history()[0]["digest"] == changed, "the copy of the changed manifest")


def test_a_copy_that_can_not_be_kept_refuses_no_load_and_the_next_load_keeps_it(
    gate: Gateway, action: ChangingAction
) -> None:
    kept = gate.state / "manifest-history"
    assert action.history()
    aside = kept.rename(gate.state / "aside")
    kept.write_text("no folder")
    try:
        second = action.change(version="1.1.0")
        done(gate, "reload")
        wait_for(lambda: "manifests in force were not copied" in gate.log.read_text(), "the log line")
        assert last_reload(gate)["change"] == {"manifests": {action.name: second}}
    finally:
        kept.unlink()
        aside.rename(kept)
    done(gate, "reload")
    assert action.history()[0]["digest"] == second


def test_a_gateway_that_does_not_answer_is_not_rolled_back(
    gate: Gateway, action: ChangingAction, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = action.change(version="1.1.0")
    done(gate, "reload")
    monkeypatch.setattr(asking, "SILENT_SECONDS", 0.5)
    place = gate.state / asking.NAME
    aside = place.rename(gate.state / "aside.sock")
    try:
        with socket.socket(socket.AF_UNIX) as silent:  # connected to, and that is all
            silent.bind(str(place))
            silent.listen()
            refused = command(gate, "actions", "rollback", action.name)
    finally:
        aside.rename(place)
    assert (refused.returncode, digest(action.place)) == (75, second)
