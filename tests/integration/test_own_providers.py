"""`gateway new provider`, then `make`: built for real in each language, and called in a sandboxed worker."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from supervisor.provider_starter import LANGUAGES, new_provider
from tests.support.gateway import gateway
from tests.support.provider_host import Failure, Providers
from tests.support.provider_tools import build

MOST_BYTES = {"zig": 30_000, "rust": 70_000, "js": 13_000_000, "python": 20_000_000}
"""What docs/providers.md says, and a little more."""
NAME = {"name": "ada king  lövelace öx"}
NO_NAME = {"name": " "}


@pytest.mark.large
@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_a_provider_is_built_loaded_and_called_within_the_limits_of_its_manifest(tmp_path: Path, language: str) -> None:
    new_provider(tmp_path, "greet", language)
    provider = tmp_path / "providers" / "greet"
    build(provider, language)
    module = provider / "provider.wasm"
    data = module.read_bytes()
    assert len(data) < MOST_BYTES[language]
    manifest = yaml.safe_load((tmp_path / "actions" / "greet.yaml").read_text())
    assert manifest["provider_module_digest"] == "sha256:" + hashlib.sha256(data).hexdigest()
    with gateway(tmp_path, _config(tmp_path, manifest)) as gate:
        agent = gate.agent()
        answer = agent.execute("greet", NAME)
        assert (answer.status_code, answer.json()["output"]) == (200, {"initials": "aklö"})
        assert answer.json()["verification_outcome"] == "unverifiable_declared"
        # A third of what the manifest allows is left, so that a larger name does not find the end of it.
        assert answer.json()["runtime"]["fuel_consumed"] < manifest["resource_limits"]["fuel"] * 2 / 3
        refused = agent.execute("greet", NO_NAME)
        assert refused.status_code == 502
        receipt = agent.get(f"/v1/receipts/{refused.headers['x-receipt-id']}").json()
        assert receipt["normalized_result"]["kind"] == "provider_failure"
        assert "at least one word" in json.dumps(receipt["normalized_result"])


@pytest.mark.large
@pytest.mark.parametrize("language", sorted({"zig", "rust"}))
def test_what_no_interpreter_is_in_is_built_the_same_twice_and_holds_no_path(tmp_path: Path, language: str) -> None:
    modules = []
    for name in ("one", "another_place"):
        new_provider(tmp_path / name, "greet", language)
        provider = tmp_path / name / "providers" / "greet"
        build(provider, language)
        modules.append((provider / "provider.wasm").read_bytes())
    assert modules[0] == modules[1]
    assert not [
        trace for trace in (b"wasi", b"/home", b"/root", b"/tmp", str(tmp_path).encode()) if trace in modules[0]
    ]


@pytest.mark.large
@pytest.mark.parametrize("language", ["rust", "zig"])  # interpreters take long to compile
def test_a_refusal_of_a_provider_says_what_to_mend(tmp_path: Path, language: str) -> None:
    new_provider(tmp_path, "greet", language)
    provider = tmp_path / "providers" / "greet"
    build(provider, language)
    host = Providers()
    assert host.imports(provider / "provider.wasm") == set()
    outcome = host.call(provider / "provider.wasm", NO_NAME)
    message = "a name has at least one word"
    assert outcome.failure == Failure("invalid-input", message, {"field": "name"}, False)


def _config(folder: Path, manifest: dict[str, Any]) -> str:
    """As `gateway dev` would find it, with a time limit that no machine is too slow for."""
    manifest["resource_limits"]["timeout_seconds"] = 300
    (folder / "actions" / "greet.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False))
    return (folder / "gateway.toml").read_text()
