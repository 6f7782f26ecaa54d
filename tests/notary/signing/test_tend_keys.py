"""`python -m notary.signing.tend_keys`: what it tells of keys, and what it refuses. Its rotations: test_keys.py."""

import json
import os
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from ipc.leases import LEASE_KEY_KEPT_SECONDS
from ipc.process.clock import parse_iso
from ipc.process.exits import Exit
from notary.signing.make_keys import make_keys
from notary.signing.tend_keys import main
from tests.support.dying_rotation import places_in

PURPOSES = ("lease", "grant", "receipt", "checkpoint")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The state directory of a gateway that was never started."""
    make_keys(tmp_path / "state")
    return tmp_path / "state"


def run(folder: Path, *command: str) -> tuple[int, Any, str]:
    """Exit code, what it printed as JSON, and its sentence."""
    keys = folder / "keys"
    places = {"state-dir": folder, "receipt-set": folder / "receipt-keys.jwks.json"}
    places |= {name: keys / f"{name}.pem" for name in ("lease", "grant", "receipt")}
    arguments = [text for name, path in places.items() for text in (f"--{name}", str(path))]
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = main([*arguments, *command])
    return code, json.loads(out.getvalue() or "null"), err.getvalue()


def told(folder: Path, *command: str) -> Any:
    code, answer, problem = run(folder, *command)
    assert (code, problem) == (Exit.OK, "")
    return answer


def rotated(folder: Path, purpose: str, *more: str) -> dict[str, Any]:
    answer: dict[str, Any] = told(folder, "rotate", "--purpose", purpose, *more)
    return answer


@pytest.mark.parametrize("purpose", PURPOSES)
def test_a_rotation_tells_both_keys_and_until_when_the_one_before_counts(folder: Path, purpose: str) -> None:
    before = {row["purpose"]: row["key_id"] for row in told(folder, "list")}
    answer = rotated(folder, purpose)
    until = answer.pop("previous_until")
    current = {row["purpose"]: row["key_id"] for row in told(folder, "list") if row["state"] == "current"}
    assert answer == {
        "purpose": purpose, "key_id": current[purpose], "path": str(folder / "keys" / f"{purpose}.pem"),
        "previous_key_id": before[purpose],
    }  # fmt: skip
    assert current == before | {purpose: answer["key_id"]}
    if purpose == "lease":
        (retired,) = [row["retired_at"] for row in told(folder, "list") if row["key_id"] == before[purpose]]
        assert parse_iso(until) - parse_iso(retired) == pytest.approx(LEASE_KEY_KEPT_SECONDS, abs=0.002)
    else:
        assert until is None, "receipts and checkpoints of it verify for ever, and grants are looked at by nobody"


def test_a_key_that_is_forgotten_counts_no_longer(folder: Path) -> None:
    answer = rotated(folder, "lease", "--forget-previous")
    assert answer["previous_until"] is None
    assert [row["key_id"] for row in told(folder, "list") if row["purpose"] == "lease"] == [answer["key_id"]]


def test_the_list_has_each_key_with_its_times_and_where_it_lies_and_of_each_purpose_the_latest_first(
    folder: Path,
) -> None:
    rotations = [rotated(folder, "receipt") for _ in range(2)]
    rows = told(folder, "list")
    assert [(row["purpose"], row["state"]) for row in rows] == [
        ("lease", "current"), ("grant", "current"),
        ("receipt", "current"), ("receipt", "previous"), ("receipt", "previous"), ("checkpoint", "current"),
    ]  # fmt: skip
    third, second, first = rows[2:5]
    assert [row["key_id"] for row in (third, second, first)] == [
        rotations[1]["key_id"], rotations[0]["key_id"], rotations[0]["previous_key_id"],
    ]  # fmt: skip
    assert [row["path"] for row in (third, second)] == [
        str(folder / "keys" / "receipt.pem"), str(folder / "receipt-keys.jwks.json"),
    ]  # fmt: skip
    assert third["retired_at"] is None
    assert first["created_at"] <= first["retired_at"] <= second["retired_at"]
    assert second["created_at"] <= third["created_at"]


def test_the_list_of_a_gateway_that_has_no_checkpoint_key_yet_goes_without_and_makes_none(folder: Path) -> None:
    key = places_in(folder).checkpoint.key
    key.unlink()
    assert [row["purpose"] for row in told(folder, "list")] == ["lease", "grant", "receipt"]
    assert not key.exists()


def test_a_list_of_keys_that_can_not_be_read_is_one_sentence(folder: Path) -> None:
    key = folder / "keys" / "grant.pem"
    key.chmod(0o644)
    assert run(folder, "list") == (Exit.CONFIG, None, f"{key}: mode 0644 lets others in. Use chmod 0600.\n")


def test_a_check_tells_every_problem_of_what_it_is_asked_for_and_whether_it_is_in_the_set(folder: Path) -> None:
    everything = ("--purpose", "lease", "--purpose", "grant", "--purpose", "receipt")
    assert told(folder, "check", *everything) == []
    lease, key_set = folder / "keys" / "lease.pem", folder / "receipt-keys.jwks.json"
    lease.chmod(0o640)
    key_set.chmod(0o604)
    in_key = {"purpose": "lease", "in_set": False, "sentence": f"{lease}: mode 0640 lets others in. Use chmod 0600."}
    in_set = {"purpose": "receipt", "in_set": True, "sentence": f"{key_set}: mode 0604 lets others in. Use chmod 0600."}
    assert told(folder, "check", *everything) == [in_key, in_set]
    assert told(folder, "check", "--purpose", "receipt") == [in_set]
    assert told(folder, "check", "--purpose", "grant") == told(folder, "check") == []


def test_a_key_that_is_not_there_is_not_rotated(folder: Path) -> None:
    key = folder / "keys" / "lease.pem"
    key.unlink()
    sentence = f"{key}: cannot read it: {os.strerror(2)}. gateway keys make makes the first ones.\n"
    assert run(folder, "rotate", "--purpose", "lease") == (Exit.NO_PERMISSION, None, sentence)
    assert not key.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_key_of_another_user_is_not_rotated(folder: Path) -> None:
    key = folder / "keys" / "lease.pem"
    os.chown(key, 65534, 65534)
    before = key.read_bytes()
    sentence = f"{key}: belongs to user id 65534. Run this as that user, as the gateway does.\n"
    assert run(folder, "rotate", "--purpose", "lease") == (Exit.NO_PERMISSION, None, sentence)
    assert key.read_bytes() == before


@pytest.mark.parametrize(
    "command",
    [
        (), ("rotate",), ("rotate", "--purpose", "operator"), ("check", "--purpose", "operator"), ("show",),
        ("rotate", "--purpose", "lease", "--key", "x"),
    ],
)  # fmt: skip
def test_a_command_that_there_is_not_is_usage(folder: Path, command: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as left:
        run(folder, *command)
    assert left.value.code == Exit.USAGE


@pytest.mark.parametrize("missing", ["state-dir", "lease", "grant", "receipt", "receipt-set"])
def test_every_place_must_be_named(folder: Path, missing: str) -> None:
    named = [name for name in ("state-dir", "lease", "grant", "receipt", "receipt-set") if name != missing]
    with redirect_stderr(StringIO()), pytest.raises(SystemExit) as left:
        main([*(text for name in named for text in (f"--{name}", str(folder / name))), "list"])
    assert left.value.code == Exit.USAGE
