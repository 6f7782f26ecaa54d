"""contrib/verify/go: built without the network, it gives every vector its verdict, except those of witnesses."""

from pathlib import Path

import pytest

from contrib.verify.oracle import NOT_IN_VERSION_1, signed_receipt
from contrib.verify.vector import vector
from tests.contrib.verify.command import NO_BUNDLES, exit_code, judge, run
from tests.contrib.verify.conftest import SOURCE
from tests.contrib.verify.mutations import mutations
from tests.contrib.verify.vectors import ALL, PROVEN, Vector, named


@pytest.mark.parametrize("vector", [one for one in ALL if not one.witness_keys], ids=lambda vector: vector.name)
def test_every_vector_comes_to_what_it_expects(program: list[str | Path], tmp_path: Path, vector: Vector) -> None:
    verdict = judge(program, vector, tmp_path)
    assert (verdict.code, verdict.reason) == (exit_code(vector.expected), vector.expected), verdict.output


def test_no_byte_of_a_proven_bundle_can_be_another(program: list[str | Path], tmp_path: Path) -> None:
    vector = named("proven-approved")
    changed = list(mutations(vector.bundle, step=61))
    assert len(changed) > 100
    accepted = [what for what, bundle in changed if judge(program, vector._replace(bundle=bundle), tmp_path).code == 0]
    assert accepted == []


@pytest.mark.parametrize("data", NO_BUNDLES.values(), ids=NO_BUNDLES)
def test_a_malformed_bundle_is_unreadable(program: list[str | Path], tmp_path: Path, data: bytes) -> None:
    bundle = tmp_path / "bundle.json"
    bundle.write_bytes(data)
    verdict = run(program, bundle, "--origin-key", named("proven-success").origin_key)
    assert (verdict.code, verdict.reason) == (2, "unreadable"), verdict.output


def test_a_bundle_with_a_member_name_twice_is_unreadable(program: list[str | Path], tmp_path: Path) -> None:
    vector = named("proven-success")
    bundle = tmp_path / "bundle.json"
    for data in (b'{"origin":"x",' + vector.data[1:], vector.data.replace(b'{"kind"', b'{"index":1,"kind"')):
        bundle.write_bytes(data)
        assert run(program, bundle, "--origin-key", vector.origin_key).code == 2


def test_a_member_name_in_other_letters_is_another_member(program: list[str | Path], tmp_path: Path) -> None:
    """encoding/json would take either for the field of a struct."""
    vector = named("proven-success")
    assert judge(program, vector._replace(bundle=vector.bundle | {"ORIGIN": "x"}), tmp_path).reason == PROVEN


def test_a_wrong_command_line_and_missing_files_are_exit_code_2(program: list[str | Path], tmp_path: Path) -> None:
    vector = named("proven-success")
    bundle = tmp_path / "bundle.json"
    bundle.write_bytes(vector.data)
    assert run(program).code == 2
    assert run(program, bundle).code == 2
    missing = run(program, tmp_path / "missing.json", "--origin-key", vector.origin_key)
    assert (missing.code, "missing.json" in missing.output, "no such file" in missing.output) == (2, True, True)
    assert run(program, bundle, "--origin-key", "no key").code == 2
    keyless = run(program, bundle, "--origin-key", vector.origin_key, "--receipt-keys", str(tmp_path / "keys.json"))
    assert (keyless.code, "keys.json" in keyless.output) == (2, True)


def test_a_refusal_shows_no_character_that_a_terminal_could_act_on(program: list[str | Path], tmp_path: Path) -> None:
    """The receipt of a call from before the tree is bound by its own signature alone: its key's id can be anybody's."""
    old, evil = dict.fromkeys(NOT_IN_VERSION_1, ...), {"signing_key_id": "\x9b2K\u202enevorp"}
    made = vector("", "", stored=signed_receipt(old, later=evil), event={"receipt_hash": ...}, before=12, index=11)
    verdict = judge(program, named("proven-success")._replace(bundle=made["bundle"]), tmp_path)
    assert (verdict.code, verdict.reason, verdict.output.isascii()) == (1, "receipt_key", True)


def test_it_stays_small_enough_to_be_read_and_has_no_dependency() -> None:
    assert all(file.read_text().count("\n") < 200 for file in SOURCE.glob("*.go"))
    assert "require" not in (SOURCE / "go.mod").read_text()
