"""A process imports at its start only the modules that it needs: others would slow every start and every recovery."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

NEVER = {"asyncio", "jsonschema", "pygments", "pytest", "rich", "structlog"}
"""Modules that are slow to import and hardly needed."""
LOOP, CRYPTOGRAPHY, WASM = {"trio"}, {"cryptography", "jwt"}, {"wasmtime"}

STARTS = [
    ("supervisor.cli", NEVER | LOOP | CRYPTOGRAPHY | WASM | {"ssl"}),  # what every command begins with
    ("supervisor.launch", NEVER | CRYPTOGRAPHY | WASM),
    ("frontend.main", NEVER | LOOP | CRYPTOGRAPHY | WASM | {"msgspec"}),  # before it is tied to its parent
    ("frontend.front", NEVER | WASM),
    ("notary.signing.make_keys", NEVER | LOOP | WASM),
    ("workers.template", NEVER | LOOP | {"regopy"}),
    ("workers.rego.main", NEVER | LOOP | CRYPTOGRAPHY | WASM | {"ssl"}),
]


@pytest.mark.parametrize(("module", "unwanted"), STARTS, ids=[module for module, _ in STARTS])
def test_a_process_starts_without_what_it_does_not_need(module: str, unwanted: set[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, {module}\nprint(*sys.modules)"],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert unwanted & set(done.stdout.split()) == set()
