"""`gateway new provider`, then `make`: built for real in each language, and called in a sandboxed worker."""

import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from supervisor.commands.create.new_provider import LANGUAGES, new_provider
from tests.support.gateway import gateway
from tests.support.provider_host import Failure, Providers
from tests.support.provider_tools import build

MOST_BYTES = {"zig": 30_000, "rust": 70_000, "js": 13_000_000, "python": 20_000_000}
"""The steps of docs/providers.md, and a few more."""
NAME = {"name": "ada king  lövelace öx"}
NO_NAME = {"name": " "}


Built = Callable[[str], Path]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The folder in which the provider of a language was made and built, once for all of these tests."""

    @cache
    def folder_of(language: str) -> Path:
        folder: Path = tmp_path_factory.mktemp(language)
        make(folder, language)
        return folder

    return folder_of


def make(folder: Path, language: str) -> None:
    new_provider(folder, "greet", language)
    build(folder / "providers" / "greet", language)


def module_in(folder: Path) -> Path:
    return folder / "providers" / "greet" / "provider.wasm"


@pytest.mark.large
@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_a_provider_is_built_loaded_and_called_within_the_limits_of_its_manifest(built: Built, language: str) -> None:
    folder = built(language)
    data = module_in(folder).read_bytes()
    assert len(data) < MOST_BYTES[language]
    manifest = yaml.safe_load((folder / "actions" / "greet.yaml").read_text())
    assert manifest["provider_module_digest"] == "sha256:" + hashlib.sha256(data).hexdigest()
    with gateway(folder, _config(folder, manifest)) as gate:
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
def test_what_no_interpreter_is_in_is_built_the_same_twice_and_holds_no_path(
    built: Built, tmp_path: Path, language: str
) -> None:
    another = tmp_path / "another_place"
    make(another, language)
    one, other = (module_in(folder).read_bytes() for folder in (built(language), another))
    assert one == other
    traces = (b"wasi", b"/home", b"/root", b"/tmp", str(another).encode(), str(built(language)).encode())
    assert not [trace for trace in traces if trace in one]


@pytest.mark.large
@pytest.mark.parametrize("language", ["rust", "zig"])  # interpreters take long to compile
def test_a_refusal_of_a_provider_says_what_to_mend(built: Built, language: str) -> None:
    module, host = module_in(built(language)), Providers()
    assert host.imports(module) == set()
    message = "a name has at least one word"
    assert host.call(module, NO_NAME).failure == Failure("invalid-input", message, {"field": "name"}, False)


def _config(folder: Path, manifest: dict[str, Any]) -> str:
    """As `gateway dev` would find it, with a time limit that no machine is too slow for."""
    manifest["resource_limits"]["timeout_seconds"] = 300
    (folder / "actions" / "greet.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False))
    return (folder / "gateway.toml").read_text()
