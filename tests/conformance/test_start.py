"""Settings that production refuses to start with, one test for each rule. The process opens no socket, and its sentence
names the setting."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.conformance import scene
from tests.conformance.deployment import Deployment
from tests.conformance.marks import row, rows
from tests.support.gateway import START_SECONDS
from tests.support.manifests import example, write_manifests
from tests.support.processes import GATEWAY, sentences
from tests.support.production import Credentials, make_keys, mapping, settings_for


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Credentials:
    """Keys as an operator makes them."""
    return make_keys(tmp_path_factory.mktemp("keys"))


Text = list[str]
"""A configuration, line by line."""


@pytest.fixture
def safe(tmp_path: Path, keys: Credentials) -> Text:
    return configuration(tmp_path, keys)


def configuration(folder: Path, keys: Credentials) -> Text:
    """A configuration that breaks no rule."""
    write_manifests(folder / "actions", example("text_digest"))
    scene.write_policy(folder / "policy", "somebody")
    lines = [f"{name} = {value}" for name, value in settings_for(folder).items()]
    lines += [f'manifests_dir = "{folder / "actions"}"', f'policy_dir = "{folder / "policy"}"']
    return [*lines, *keys.settings.splitlines(), *keys.operators.splitlines(), *mapping(os.geteuid()).splitlines()]


def refused(folder: Path, config: Text, *words: str, code: int = 78) -> str:
    """Check that `gateway run` ends with this code, names the words and opens no socket; return its output."""
    file = folder / "gateway.toml"
    file.write_text("\n".join(config) + "\n")
    done = subprocess.run(
        [GATEWAY, "run", "--config", str(file)],
        capture_output=True, text=True, timeout=START_SECONDS, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == code, (done.returncode, done.stderr)
    said = " ".join(sentences(done)) + done.stderr
    assert all(word in said for word in words), said
    assert "Traceback" not in said
    assert not (folder / "gate.sock").exists()
    assert not (folder / "gate-admin.sock").exists()
    return said


@row("start/safe")
def test_a_safe_configuration_starts_and_nothing_is_weakened(run: Deployment) -> None:
    assert run.ready().json()["status"] == "ready"
    assert run.status()["weakened"] == []


Told = tuple[str, list[str]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, keys: Credentials) -> Told:
    """The output of the start, and the lines of the check, for a configuration that breaks each of the nine rules."""
    folder = tmp_path_factory.mktemp("unsafe")
    missing = ("receipt_signing_key_path =", "grant_signing_key_path =", "receipt_keys_jwks_path =", "dpop_jkt =")
    safe = [line for line in configuration(folder, keys) if not line.startswith(missing)]
    denied = [example("text_digest", action_id=name) for name in ("oddly_denied", "forbidden_export")]
    write_manifests(folder / "actions", example("http_fetch", egress={"profile": "proxy_allowlist"}), *denied)
    top = ('listen_http_addr = "127.0.0.1:0"', 'response_schema_enforcement = "warn"')
    unsafe = [*top, *safe, "[identity]", 'provider = "none"', "[identity.peercred]", "allow_unmapped = true"]
    said = refused(folder, unsafe)
    checked = subprocess.run(
        [GATEWAY, "check", "--config", str(folder / "gateway.toml")],
        capture_output=True, text=True, timeout=START_SECONDS, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert checked.returncode == 78
    return said, checked.stdout.splitlines()


@rows(
    "start",
    {
        "identity-none": "identity.provider =",
        "shared-operator-key": "operators[0].dpop_jkt",
        "tcp-without-unsafe": "listen_http_addr",
        "ephemeral-receipt-key": "receipt_signing_key_path",
        "ephemeral-grant-key": "grant_signing_key_path",
        "ephemeral-receipt-jwks": "receipt_keys_jwks_path",
        "schema-warn": "response_schema_enforcement",
        "allow-unmapped": "identity.peercred.allow_unmapped",
        "proxy-profile-without-proxy": "egress.profile = proxy_allowlist",
    },
)
def test_an_unsafe_setting_is_refused_by_name(told: Told, case: str) -> None:
    said, checked = told
    (line,) = [line for line in checked if f"  {case}" in line]
    assert line in said


@row("start/all-at-once")
def test_all_nine_refusals_are_told_at_once_and_check_says_the_same_before(told: Told) -> None:
    said, checked = told
    assert checked[-1] == "9 problems, nothing started."
    assert [line for line in checked if line not in said] == []


@row("start/shared-operator-key")
def test_one_broken_rule_is_enough_such_as_no_operator_with_a_key_of_their_own(
    tmp_path: Path, safe: Text, keys: Credentials
) -> None:
    operators = keys.operators.splitlines()
    refused(tmp_path, [one for one in safe if one not in operators], "operators", "1 problem, nothing started.")


@row("start/store-unreachable")
def test_a_store_that_can_not_be_opened_ends_the_start(tmp_path: Path, safe: Text) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "ledger.sqlite3").write_bytes(b"this is no database" * 1000)
    refused(tmp_path, safe, "ledger.sqlite3", code=69)


@row("start/manifests-unloadable", "start/proxy-profile-without-proxy")
def test_manifests_that_can_not_be_loaded_or_served_end_the_start(tmp_path: Path, safe: Text) -> None:
    (tmp_path / "actions" / "broken.yaml").write_text("action_id: [")
    write_manifests(tmp_path / "actions", example("http_fetch", egress={"profile": "proxy_allowlist"}))
    refused(tmp_path, safe, "broken.yaml", "http_fetch.yaml", "proxy_allowlist")


@row("start/wasm-runtime")
def test_a_runtime_that_can_not_get_ready_ends_the_start(tmp_path: Path, safe: Text) -> None:
    """Nowhere to keep compiled modules: mapped files must lie where no other user writes."""
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "modules-cache").write_text("this is no folder")
    refused(tmp_path, safe, "modules-cache", code=77)
