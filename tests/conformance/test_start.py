"""Settings that production refuses to start with, one test for each rule. The process opens no socket, and its sentence
names the setting."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.conformance import scene
from tests.conformance.deployment import Deployment
from tests.conformance.marks import row, rows
from tests.support.gateway import START_SECONDS
from tests.support.manifests import REPOSITORY, example, write_manifests
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
    """A configuration that breaks no rule."""
    write_manifests(tmp_path / "actions", example("text_digest"))
    scene.write_policy(tmp_path / "policy", "somebody")
    lines = [f"{name} = {value}" for name, value in settings_for(tmp_path).items()]
    lines += [f'manifests_dir = "{tmp_path / "actions"}"', f'policy_dir = "{tmp_path / "policy"}"']
    return [*lines, *keys.settings.splitlines(), *keys.operators.splitlines(), *mapping(os.geteuid()).splitlines()]


def refused(folder: Path, config: Text, *words: str, code: int = 78, gateway: Sequence[str] = (GATEWAY,)) -> str:
    """Check that `gateway run` ends with this code, names the words and opens no socket; return its output."""
    file = folder / "gateway.toml"
    file.write_text("\n".join(config) + "\n")
    done = subprocess.run(
        [*gateway, "run", "--config", str(file)],
        capture_output=True, text=True, timeout=START_SECONDS, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == code, (done.returncode, done.stderr)
    said = " ".join(sentences(done)) + done.stderr
    assert all(word in said for word in words), said
    assert gateway != (GATEWAY,) or "Traceback" not in said
    assert not (folder / "gate.sock").exists()
    assert not (folder / "gate-admin.sock").exists()
    return said


@row("start/safe")
def test_a_safe_configuration_starts_and_nothing_is_weakened(run: Deployment) -> None:
    assert run.ready().json()["status"] == "ready"
    assert run.status()["weakened"] == []


def without(name: str) -> Callable[[Text], Text]:
    return lambda lines: [line for line in lines if not line.startswith(f"{name} =")]


def first(*lines: str) -> Callable[[Text], Text]:
    return lambda config: [*lines, *config]


def last(*lines: str) -> Callable[[Text], Text]:
    return lambda config: [*config, *lines]


@rows(
    "start",
    {
        "identity-none": (last("[identity]", 'provider = "none"'), "identity.provider"),
        "tcp-without-unsafe": (first('listen_http_addr = "127.0.0.1:0"'), "listen_http_addr"),
        "ephemeral-receipt-key": (without("receipt_signing_key_path"), "receipt_signing_key_path"),
        "ephemeral-grant-key": (without("grant_signing_key_path"), "grant_signing_key_path"),
        "ephemeral-receipt-jwks": (without("receipt_keys_jwks_path"), "receipt_keys_jwks_path"),
        "schema-warn": (first('response_schema_enforcement = "warn"'), "response_schema_enforcement"),
        "allow-unmapped": (last("[identity.peercred]", "allow_unmapped = true"), "allow_unmapped"),
    },
)
def test_an_unsafe_setting_is_refused_by_name(
    tmp_path: Path, safe: Text, case: tuple[Callable[[Text], Text], str]
) -> None:
    change, name = case
    refused(tmp_path, change(safe), name)


@pytest.mark.parametrize("change", [without("dpop_jkt"), None], ids=["without a thumbprint", "no operator"])
@row("start/shared-operator-key")
def test_an_operator_without_a_key_of_their_own_is_refused(
    tmp_path: Path, safe: Text, keys: Credentials, change: Callable[[Text], Text] | None
) -> None:
    operators = keys.operators.splitlines()
    refused(tmp_path, change(safe) if change else [one for one in safe if one not in operators], "operators")


@row("start/proxy-profile-without-proxy")
def test_the_proxy_profile_without_a_proxy_is_refused(tmp_path: Path, safe: Text) -> None:
    through = example("http_fetch", egress={"profile": "proxy_allowlist"})
    write_manifests(tmp_path / "actions", through)
    refused(tmp_path, safe, "http_fetch.yaml", "proxy_allowlist")


@row("start/all-at-once")
def test_all_nine_refusals_are_told_at_once_and_check_says_the_same_before(tmp_path: Path, safe: Text) -> None:
    write_manifests(tmp_path / "actions", example("http_fetch", egress={"profile": "proxy_allowlist"}))
    for name in ("receipt_signing_key_path", "grant_signing_key_path", "receipt_keys_jwks_path", "dpop_jkt"):
        safe = without(name)(safe)
    top = ('listen_http_addr = "127.0.0.1:0"', 'response_schema_enforcement = "warn"')
    unsafe = [*top, *safe, "[identity]", 'provider = "none"', "[identity.peercred]", "allow_unmapped = true"]
    said = refused(tmp_path, unsafe)
    checked = checks(tmp_path)
    assert checked.returncode == 78
    told = checked.stdout.splitlines()
    assert told[-1] == "9 problems, nothing started."
    for name in (
        "identity.provider =", "operators[0].dpop_jkt", "listen_http_addr", "receipt_signing_key_path",
        "grant_signing_key_path", "receipt_keys_jwks_path", "response_schema_enforcement",
        "identity.peercred.allow_unmapped", "egress.profile = proxy_allowlist",
    ):  # fmt: skip
        assert len([line for line in told if f"  {name}" in line]) == 1, (name, told)
    assert all(line in said for line in told)


def checks(folder: Path) -> "subprocess.CompletedProcess[str]":
    """`gateway check` of the configuration that was refused."""
    return subprocess.run(
        [GATEWAY, "check", "--config", str(folder / "gateway.toml")],
        capture_output=True, text=True, timeout=START_SECONDS, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@row("start/store-unreachable")
def test_a_store_that_can_not_be_opened_ends_the_start(tmp_path: Path, safe: Text) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "ledger.sqlite3").write_bytes(b"this is no database" * 1000)
    refused(tmp_path, safe, "ledger.sqlite3", code=69)
    assert "ledger.sqlite3 is not a SQLite database" in checks(tmp_path).stdout


@row("start/manifests-unloadable")
def test_manifests_that_can_not_be_loaded_end_the_start(tmp_path: Path, safe: Text) -> None:
    (tmp_path / "actions" / "broken.yaml").write_text("action_id: [")
    refused(tmp_path, safe, "broken.yaml")


@row("start/wasm-runtime")
def test_a_runtime_that_can_not_get_ready_ends_the_start(tmp_path: Path, safe: Text) -> None:
    """Nowhere to keep compiled modules: mapped files must lie where no other user writes."""
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "modules-cache").write_text("this is no folder")
    refused(tmp_path, safe, "modules-cache", code=77)
    assert "modules-cache is not a folder" in checks(tmp_path).stdout


def without_a_runtime(folder: Path) -> list[str]:
    """The gateway as it is installed where the library of the runtime can't be loaded."""
    folder.mkdir()
    for name in ("contract", "ipc", "frontend", "notary", "workers", "contrib", "docs"):
        (folder / name).symlink_to(REPOSITORY / name)
    ignored = shutil.ignore_patterns("__pycache__")  # where other processes write
    shutil.copytree(REPOSITORY / "supervisor", folder / "supervisor", ignore=ignored)  # it starts what lies beside it
    shutil.copy(REPOSITORY / "launch.py", folder)
    (folder / "wasmtime").mkdir()
    (folder / "wasmtime" / "__init__.py").write_text('raise OSError("libwasmtime.so: cannot open the file")\n')
    return [sys.executable, "-I", str(folder / "launch.py"), "supervisor.cli"]


@row("start/wasm-runtime")
def test_a_runtime_that_can_not_be_loaded_ends_the_start(tmp_path: Path, safe: Text) -> None:
    said = refused(tmp_path, safe, "libwasmtime.so", code=1, gateway=without_a_runtime(tmp_path / "installed"))
    assert "template ended with FAILED 5 times in a row; starting it again would not help" in said
