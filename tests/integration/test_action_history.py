"""`gateway actions history` and `rollback`: earlier manifests are listed by the digests of evidence, and come back."""

import errno
import hashlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from frontend.walls import FrontPlaces
from ipc.process.exits import Exit
from ipc.settings import Settings
from supervisor.cli import main as cli
from supervisor.commands.inspect import file_changes
from tests.support.gateway import PROGRAM, START_SECONDS, Gateway, gateway, wait_for
from tests.support.manifests import PROVIDERS, example, open_policy, put_module, trust, write_manifests
from tests.support.production import PUBLIC_URL, production


def digest(path: Path) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def command(gate: Gateway, *words: str, is_dev: bool = True) -> "subprocess.CompletedProcess[str]":
    """Run a command of `gateway` for this gateway, which need not run."""
    config = gate.log.parent / "gateway.toml"
    named = [*(["--state-dir", str(gate.state)] if is_dev else []), "--config", str(config)]
    return subprocess.run(
        [*PROGRAM, *words, *named], check=False, capture_output=True, text=True, timeout=START_SECONDS
    )


def done(gate: Gateway, *words: str, is_dev: bool = True) -> str:
    ended = command(gate, *words, is_dev=is_dev)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def history(gate: Gateway, action: str = "text_digest") -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = json.loads(done(gate, "actions", "history", action, "--json"))
    return told


def has_copies(gate: Gateway, *, is_dev: bool = True) -> None:
    """Return once the start has left its copies: an edit before that leaves none of the file as it was."""
    words = ("actions", "history", "text_digest")
    wait_for(lambda: command(gate, *words, is_dev=is_dev).returncode == 0, "the copies of the start")


def change(folder: Path, **changes: Any) -> str:
    """Write the action with another version; returns its digest."""
    write_manifests(folder / "actions", example("text_digest", **changes))
    return digest(folder / "actions" / "text_digest.yaml")


def config(folder: Path) -> str:
    policy = open_policy(folder / "policy")
    return f'manifests_dir = "{folder / "actions"}"\npolicy_dir = "{policy}"\nfront_processes = 2\n'


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gateway]:
    change(tmp_path)
    with gateway(tmp_path, config(tmp_path)) as running:
        has_copies(running)
        yield running


def test_each_load_is_listed_with_the_digests_that_evidence_names(gate: Gateway, tmp_path: Path) -> None:
    first = digest(tmp_path / "actions" / "text_digest.yaml")
    second = change(tmp_path, version="1.1.0")
    done(gate, "reload")
    (tmp_path / "actions" / "text_digest.yaml").unlink()
    write_manifests(tmp_path / "actions", example("file_write"))
    done(gate, "reload")
    told = history(gate)
    assert [one["digest"] for one in told] == [None, second, first]
    assert [one["version"] for one in told] == ["", "1.1.0", "1.0.0"]
    assert [one["at"] for one in told] == sorted((one["at"] for one in told), reverse=True)
    (started,) = gate.events(event_type="GatewayStarted")
    assert started["change"] == {"manifests": {"text_digest": first}}
    gone, changed = gate.events(event_type="AdminReload")
    assert changed["change"] == {"manifests": {"text_digest": second}}
    assert gone["change"]["manifests"]["text_digest"] is None
    table = done(gate, "actions", "history", "text_digest").splitlines()
    assert table[1].startswith("*")
    assert table[1].endswith("(gone)")
    assert first[7:19] in table[3]


def test_a_rollback_brings_the_earlier_manifest_back_in_force(gate: Gateway, tmp_path: Path) -> None:
    place = tmp_path / "actions" / "text_digest.yaml"
    before = place.read_bytes()
    first, second = digest(place), change(tmp_path, version="1.1.0")
    done(gate, "reload")
    told = done(gate, "actions", "rollback", "text_digest")
    assert "-version: 1.1.0\n+version: 1.0.0" in told
    assert place.read_bytes() == before
    assert gate.agent().execute("text_digest", {"text": "hello"}).status_code == 200
    assert gate.events(event_type="ActionCall", limit=1)[0]["action_version"] == "1.0.0"
    (event,) = gate.events(event_type="ActionRolledBack")
    assert (event["action_id"], event["action_version"], event["principal"]) == ("text_digest", "1.0.0", "command")
    assert (event["change"]["from"], event["change"]["to"]) == (second, first)
    assert event["change"]["by"].startswith("uid:")
    assert gate.events(event_type="AdminReload", limit=1)[0]["change"] == {"manifests": {"text_digest": first}}
    assert [one["digest"] for one in history(gate)] == [first, second, first]
    done(gate, "actions", "rollback", "text_digest", "--to", second[7:19])
    assert digest(place) == second


def test_a_rollback_would_lose_no_edit_and_changes_nothing_that_check_refuses(gate: Gateway, tmp_path: Path) -> None:
    place = tmp_path / "actions" / "text_digest.yaml"
    change(tmp_path, version="1.1.0")
    done(gate, "reload")
    edited = change(tmp_path, version="1.2.0")
    refused = command(gate, "actions", "rollback", "text_digest")
    assert (refused.returncode, digest(place)) == (1, edited)
    assert "has changed since it was last loaded" in refused.stderr
    change(tmp_path, version="1.1.0")
    (tmp_path / "actions" / "broken.yaml").write_text("action_id: [")
    second = digest(place)
    refused = command(gate, "actions", "rollback", "text_digest")
    assert (refused.returncode, digest(place)) == (78, second)
    assert str(tmp_path / "actions" / "broken.yaml") in refused.stderr
    assert not gate.events(event_type="ActionRolledBack")
    refused = command(gate, "actions", "rollback", "text_digest", "--to", "9.9.9")
    assert "no earlier manifest of text_digest has the version or digest 9.9.9" in refused.stderr


def refuse(path: Path, _: bytes) -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))


def test_without_a_running_gateway_a_rollback_leaves_its_event_for_the_next_start_and_none_if_it_can_not_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = change(tmp_path)
    with gateway(tmp_path, config(tmp_path)) as gate:
        has_copies(gate)
        second = change(tmp_path, version="1.1.0")
        done(gate, "reload")
    words = ["actions", "rollback", "text_digest", "--to", "1.0.0"]
    with monkeypatch.context() as patched:
        patched.setattr(file_changes, "_put", refuse)
        named = ["--state-dir", str(gate.state), "--config", str(tmp_path / "gateway.toml")]
        assert cli([*words, *named]) == Exit.NO_PERMISSION
    assert digest(tmp_path / "actions" / "text_digest.yaml") == second
    told = done(gate, *words)
    assert "No gateway runs: the next start puts it in force." in told
    with gateway(tmp_path, config(tmp_path)) as again:
        (event,) = again.events(event_type="ActionRolledBack")
        assert (event["change"]["from"], event["change"]["to"]) == (second, first)
        assert again.events(event_type="GatewayStarted", limit=1)[0]["change"] == {"manifests": {"text_digest": first}}
        assert again.agent().execute("text_digest", {"text": "hello"}).status_code == 200
        assert again.events(event_type="ActionCall", limit=1)[0]["action_version"] == "1.0.0"


def test_a_rollback_brings_a_module_back_that_was_removed_and_is_no_longer_trusted(tmp_path: Path) -> None:
    folder = tmp_path / "actions"
    data = (PROVIDERS / "text_digest.wasm").read_bytes() + b"\x00\x05\x04test"
    module = put_module(folder, data)
    trust(folder, module)
    first = change(tmp_path, provider_module_digest=module)
    with gateway(tmp_path, config(tmp_path)) as gate:
        has_copies(gate)
        change(tmp_path, version="1.1.0")
        (folder / "modules" / f"{module.removeprefix('sha256:')}.wasm").unlink()
        (folder / "trusted_modules.yaml").write_text("digests: {}  # none\n")
        done(gate, "reload")
        told = done(gate, "actions", "rollback", "text_digest")
        assert f"{module} is trusted again" in told
        answer = gate.agent().execute("text_digest", {"text": "hello"})
        assert answer.status_code == 200, answer.text
        call = gate.events(event_type="ActionCall", limit=1)[0]
        assert (call["action_version"], call["provider_module_digest"]) == ("1.0.0", module)
        assert digest(folder / "text_digest.yaml") == first


def test_what_the_gateway_refuses_is_put_back(gate: Gateway, tmp_path: Path) -> None:
    change(tmp_path, version="1.1.0")
    done(gate, "reload")
    second = digest(tmp_path / "actions" / "text_digest.yaml")
    (tmp_path / "policy" / "data.json").write_text("{")
    refused = command(gate, "actions", "rollback", "text_digest")
    assert refused.returncode == 1
    assert "the gateway refused it, and nothing was changed" in refused.stderr
    assert digest(tmp_path / "actions" / "text_digest.yaml") == second
    assert not gate.events(event_type="ActionRolledBack")
    assert gate.agent().execute("text_digest", {"text": "hello"}).status_code == 200
    assert gate.events(event_type="ActionCall", limit=1)[0]["action_version"] == "1.1.0"


def test_a_front_that_starts_with_other_files_than_those_in_force_leaves_an_event(
    gate: Gateway, tmp_path: Path
) -> None:  # fmt: skip
    changed = change(tmp_path, version="1.1.0")
    gate.child("front 1").kill()
    (event,) = wait_for(lambda: gate.is_ready() and gate.events(event_type="AdminReload"), "the event of the successor")
    assert (event["principal"], event["change"]) == ("gateway", {"manifests": {"text_digest": changed}})
    assert event["reason"] == "a front that started read other manifests than those in force"
    wait_for(lambda: [one["digest"] for one in history(gate)][:1] == [changed], "the copy of the changed manifest")


def test_a_copy_that_can_not_be_kept_refuses_no_load_and_the_next_load_keeps_it(gate: Gateway, tmp_path: Path) -> None:
    kept = gate.state / "manifest-history"
    wait_for(lambda: history(gate), "the first copy")
    aside = kept.rename(gate.state / "aside")
    kept.write_text("no folder")
    second = change(tmp_path, version="1.1.0")
    done(gate, "reload")
    wait_for(lambda: "manifests in force were not copied" in gate.log.read_text(), "the log line")
    assert gate.events(event_type="AdminReload", limit=1)[0]["change"] == {"manifests": {"text_digest": second}}
    kept.unlink()
    aside.rename(kept)
    done(gate, "reload")
    assert history(gate)[0]["digest"] == second


def test_a_production_gateway_behind_its_walls_rolls_back_and_no_front_reaches_the_copies(tmp_path: Path) -> None:
    place = tmp_path / "actions" / "text_digest.yaml"
    first = change(tmp_path)
    place.chmod(0o640)
    top = f'manifests_dir = "{place.parent}"\npolicy_dir = "{open_policy(tmp_path / "policy")}"'
    with production(tmp_path, top) as gate:
        has_copies(gate, is_dev=False)
        change(tmp_path, version="1.1.0")
        done(gate, "reload", is_dev=False)
        told = done(gate, "actions", "rollback", "text_digest", is_dev=False)
        assert "text_digest: version 1.1.0" in told
        assert (digest(place), place.stat().st_mode & 0o777) == (first, 0o640)
        (event,) = gate.events(event_type="ActionRolledBack")
        assert event["change"]["to"] == first
        settings = Settings(str(gate.state), PUBLIC_URL, manifests_dir=str(place.parent))
        copies = os.path.realpath(gate.state / "manifest-history")
        assert not [
            rule for rule in FrontPlaces(settings).all() if copies.startswith(os.path.realpath(rule.path) + "/")
        ]


def test_a_gateway_that_does_not_answer_is_not_rolled_back(gate: Gateway, tmp_path: Path) -> None:
    change(tmp_path, version="1.1.0")
    done(gate, "reload")
    second = digest(tmp_path / "actions" / "text_digest.yaml")
    gate.process.send_signal(signal.SIGSTOP)
    try:
        refused = command(gate, "actions", "rollback", "text_digest")
    finally:
        gate.process.send_signal(signal.SIGCONT)
    assert (refused.returncode, digest(tmp_path / "actions" / "text_digest.yaml")) == (75, second)
