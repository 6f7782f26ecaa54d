"""contrib/verify/approval.py: who signed an approval, by every vector that has one, as a library and as a program."""

import ast
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrib.verify import oracle
from contrib.verify.approval import Refusal, verify
from tests.contrib.verify.command import NO_BUNDLES, run
from tests.contrib.verify.vectors import ALL, FOLDER, OF_APPROVALS, PROVEN, Vector, named

PROGRAM = FOLDER / "approval.py"
SIGNED = [one for one in ALL if one.name.startswith("approval-")]
ALICE = oracle.operator_jkt(oracle.OPERATOR_KEYS["alice"])


def reason_of(vector: Vector) -> str:
    try:
        verify(vector.data, vector.operator_jkts)
    except Refusal as refusal:
        reason, sentence = refusal.args
        assert sentence.endswith(".")
        return str(reason)
    return PROVEN


@pytest.mark.parametrize("vector", SIGNED, ids=lambda vector: vector.name)
def test_every_vector_of_an_approval_comes_to_what_it_expects(vector: Vector) -> None:
    assert reason_of(vector) == vector.expected


def test_a_call_that_nobody_has_signed_for_is_not_proven_to_be_approved() -> None:
    assert reason_of(named("proven-approved")) == reason_of(named("proven-success")) == OF_APPROVALS


@pytest.fixture
def program(tmp_path: Path) -> list[str | Path]:
    """The file alone, where nothing of this project can be imported."""
    copy = tmp_path / "approval.py"
    copy.write_text(PROGRAM.read_text())
    return [sys.executable, "-I", copy]


def test_it_imports_the_standard_library_and_cryptography_alone_and_stays_small() -> None:
    text, imported = PROGRAM.read_text(), set()
    for node in ast.walk(ast.parse(text)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        imported |= {name.partition(".")[0] for name in names}
    assert imported - sys.stdlib_module_names == {"cryptography"}
    assert text.count("\n") < 150


def test_it_says_who_approved_what_and_when(program: list[str | Path], tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.json"
    bundle.write_bytes(named("approval-signed").data)
    verdict = run(program, bundle, "--operator-jkt", ALICE)
    assert (verdict.code, verdict.reason) == (0, PROVEN)
    for part in (
        ALICE,
        "'apr_01'",
        "'payment_transfer'",
        "'alice'",
        "2026-11-23",
        oracle.some_hash("plan"),
        "verify.py",
    ):
        assert part in verdict.output
    assert "says that it is the key" in run(program, bundle).output


def test_its_exit_code_tells_the_verdict(program: list[str | Path], tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.json"
    bundle.write_bytes(named("approval-of-a-denial").data)
    assert (run(program, bundle).code, run(program, bundle).reason) == (1, OF_APPROVALS)
    assert run(program).code == run(program, tmp_path / "missing.json").code == 2


@pytest.mark.parametrize("data", NO_BUNDLES.values(), ids=NO_BUNDLES)
def test_what_is_no_bundle_is_unreadable(data: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        verify(data)
    assert refused.value.args[0] == "unreadable"


@given(st.text(max_size=80) | st.text(alphabet="ab.-_", min_size=90, max_size=120) | st.none() | st.integers())
def test_noise_for_a_signature_is_refused(noise: object) -> None:
    approval = oracle.approved_by("x")["receipt"]["approval"] | {"signature": noise}
    stored = oracle.signed_receipt({"approval": approval})
    with pytest.raises(Refusal) as refused:
        verify(json.dumps({"receipt": oracle.b64(stored)}).encode())
    assert refused.value.args[0] == OF_APPROVALS


def test_no_character_of_a_signature_can_be_another() -> None:
    signature = oracle.signed_approval()
    for place in range(0, len(signature), 3):
        changed = signature[:place] + ("B" if signature[place] == "A" else "A") + signature[place + 1 :]
        call = oracle.approved_by(changed)
        stored = oracle.signed_receipt(call["receipt"])
        with pytest.raises(Refusal):
            verify(json.dumps({"receipt": oracle.b64(stored)}).encode(), (ALICE,))
