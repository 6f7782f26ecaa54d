"""contrib/verify/verify.py: every vector, as a library and as a program; no byte may be another."""

import ast
import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrib.verify import oracle
from contrib.verify.verify import LOG, NoteKey, Refusal, require_signed, root_of, verify
from tests.contrib.verify.command import NO_BUNDLES, Verdict, exit_code, judge, run
from tests.contrib.verify.mutations import mutations
from tests.contrib.verify.vectors import ALL, FOLDER, OF_APPROVALS, PROVEN, Vector, named

PROGRAM = FOLDER / "verify.py"
KEY = oracle.vkey(oracle.ORIGIN, oracle.LOG_KEY)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=5,
)


def reason_of(vector: Vector, data: bytes | None = None) -> str:
    """ "proven", or the class of the refusal; anything else that is raised is a fault."""
    try:
        verify(vector.data if data is None else data, vector.origin_key, vector.receipt_keys, vector.witness_keys)
    except Refusal as refusal:
        reason, sentence = refusal.args
        assert sentence.endswith(".")
        assert isinstance(reason, str)
        return reason
    return PROVEN


@pytest.mark.parametrize("vector", [one for one in ALL if one.expected != OF_APPROVALS], ids=lambda vector: vector.name)
def test_every_vector_comes_to_what_it_expects(vector: Vector) -> None:
    assert reason_of(vector) == vector.expected


def test_it_imports_the_standard_library_and_cryptography_alone() -> None:
    imported = set()
    for node in ast.walk(ast.parse(PROGRAM.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        imported |= {name.partition(".")[0] for name in names}
    assert imported - sys.stdlib_module_names == {"cryptography"}


def test_it_stays_small_enough_to_be_read() -> None:
    assert PROGRAM.read_text().count("\n") < 300


@pytest.fixture
def program(tmp_path: Path) -> list[str | Path]:
    """The file alone, where nothing of this project can be imported."""
    copy = tmp_path / "verify.py"
    copy.write_text(PROGRAM.read_text())
    return [sys.executable, "-I", copy]


@pytest.mark.parametrize(
    "name",
    ["proven-approved", "proven-two-witnesses", "edited-event", "witness-missing", "note-and-a-key-with-a-false-id"],
)
def test_its_exit_code_tells_the_verdict(program: list[str | Path], tmp_path: Path, name: str) -> None:
    vector = named(name)
    verdict = judge(program, vector, tmp_path)
    assert (verdict.code, verdict.reason) == (exit_code(vector.expected), vector.expected), verdict.output


def test_it_says_who_did_what_when_and_by_which_log(program: list[str | Path], tmp_path: Path) -> None:
    said = judge(program, named("proven-two-witnesses"), tmp_path).output
    for part in (
        "'agent:invoices'", "'payment_transfer'", "'1.0.0'", "'2026-11-23T04:59:58.701Z'", "'success'", "'verified'",
        "'gate.example.com'", "size 21", "2026-11-23T05:00:00.000Z", "'witness.example.org'", "'receipts-2026'",
    ):  # fmt: skip
        assert part in said


def test_it_says_when_the_signature_of_the_receipt_was_not_checked(program: list[str | Path], tmp_path: Path) -> None:
    assert "was not checked" in judge(program, named("proven-without-receipt-keys"), tmp_path).output


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def verdict_on(program: list[str | Path], tmp_path: Path, data: bytes) -> Verdict:
    return run(program, write(tmp_path / "bundle.json", data), "--origin-key", KEY)


@pytest.mark.parametrize("data", NO_BUNDLES.values(), ids=NO_BUNDLES)
def test_what_is_no_bundle_is_unreadable(program: list[str | Path], tmp_path: Path, data: bytes) -> None:
    verdict = verdict_on(program, tmp_path, data)
    assert (verdict.code, verdict.reason) == (2, "unreadable"), verdict.output


def test_a_bundle_with_a_member_name_twice_is_unreadable(program: list[str | Path], tmp_path: Path) -> None:
    data = named("proven-success").data
    assert verdict_on(program, tmp_path, data).code == 0
    for twice in (b'{"origin":"x",' + data[1:], data.replace(b'{"kind"', b'{"index":1,"kind"')):
        assert verdict_on(program, tmp_path, twice).code == 2


def test_a_wrong_command_line_and_missing_files_are_exit_code_2(program: list[str | Path], tmp_path: Path) -> None:
    bundle = write(tmp_path / "bundle.json", named("proven-success").data)
    assert run(program).code == 2
    assert run(program, bundle).code == 2
    assert run(program, tmp_path / "missing.json", "--origin-key", KEY).code == 2
    assert run(program, bundle, "--origin-key", "no key").code == 2
    for keys in ("", tmp_path / "missing.json", write(tmp_path / "empty.json", b"")):
        assert run(program, bundle, "--origin-key", KEY, "--receipt-keys", keys).code == 2


def test_what_stands_in_a_log_writes_no_line_of_its_own() -> None:
    stored = oracle.signed_receipt({"principal": "x\nproven\x1b[2J\u202e"})
    bundle = oracle.bundle_of(
        stored, oracle.event_of(stored, {"principal": "x\nproven\x1b[2J\u202e"}),
        oracle.intent_of({"principal": "x\nproven\x1b[2J\u202e"}),
    )  # fmt: skip
    said = verify(json.dumps(bundle).encode(), KEY)
    assert all(line.isascii() and line.isprintable() for line in said)


def test_it_says_which_signature_it_has_not_checked(program: list[str | Path], tmp_path: Path) -> None:
    assert "approval.py" in judge(program, named("approval-signed"), tmp_path).output
    assert "approval.py" not in judge(program, named("proven-approved"), tmp_path).output


@pytest.mark.large
def test_no_byte_of_a_proven_bundle_can_be_another() -> None:
    vector = named("proven-one-witness")
    assert reason_of(vector) == PROVEN
    tried = [
        (what, reason_of(vector, json.dumps(bundle).encode())) for what, bundle in mutations(vector.bundle, step=2)
    ]
    assert len(tried) > 3000
    assert [what for what, reason in tried if reason == PROVEN] == []


@given(st.data())
def test_no_part_of_a_proven_bundle_can_be_another_value(data: st.DataObject) -> None:
    vector = named("proven-approved")
    bundle: dict[str, Any] = json.loads(vector.data)
    places: list[tuple[Any, Any]] = [(bundle, name) for name in bundle if name != "keys"]
    places += [(leaf, name) for leaf in bundle["leaves"] for name in leaf]
    places += [(leaf["proof"], step) for leaf in bundle["leaves"] for step in range(len(leaf["proof"]))]
    holder, name = data.draw(st.sampled_from(places))
    before = json.dumps(holder[name])
    holder[name] = data.draw(JSON)
    if json.dumps(holder[name]) != before:
        assert reason_of(vector, json.dumps(bundle).encode()) != PROVEN


@given(st.binary(max_size=60) | JSON.map(oracle.canonical))
def test_noise_that_a_log_has_signed_is_refused(noise: bytes) -> None:
    stored = oracle.signed_receipt({})
    event, intent = oracle.event_of(stored, {}), oracle.intent_of({})
    noisy = (
        oracle.bundle_of(noise, oracle.event_of(noise, {}), intent),
        oracle.bundle_of(stored, noise, intent),
        oracle.bundle_of(stored, event, noise),
    )
    for bundle in noisy:
        with pytest.raises(Refusal):
            verify(json.dumps(bundle).encode(), KEY)


@given(st.text(max_size=80) | st.text(alphabet="\n —+=09Aa", max_size=80))
def test_noise_for_a_note_is_refused(noise: str) -> None:
    bundle = named("proven-success").bundle | {"checkpoint": noise}
    with pytest.raises(Refusal):
        verify(json.dumps(bundle).encode(), KEY)


@given(st.text(max_size=80))
def test_noise_for_a_key_is_unreadable(noise: str) -> None:
    with pytest.raises(Refusal) as refused:
        verify(named("proven-success").data, noise)
    assert refused.value.args[0] == "unreadable"


def test_every_leaf_of_every_small_tree_leads_to_its_root() -> None:
    leaves = [bytes([number]) for number in range(33)]
    for size in range(1, len(leaves) + 1):
        root = oracle.tree_hash(leaves[:size])
        for index in range(size):
            path = oracle.tree_path(index, leaves[:size])
            assert root_of(leaves[index], index, size, path, "event") == root


def test_a_signed_note_that_others_made_verifies() -> None:
    """The example of the Go package golang.org/x/mod/sumdb/note."""
    key = NoteKey("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", LOG)
    signed = base64.b64decode(
        "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="
    )
    text = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
    assert signed[:4] == key.key_id
    require_signed(key.public, signed[4:], text.encode(), "note_signature", "The signature is invalid.")
