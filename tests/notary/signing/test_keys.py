"""Signing keys on the disk: rotated whole or not at all, listed before they sign, by one process at a time."""

import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec.structs import replace

from frontend.auth.lease import LeaseVerifier
from frontend.clock import FrontClock
from frontend.notary.in_force import NOTHING
from ipc.leases import LEASE_KEY_KEPT_SECONDS
from ipc.process.clock import iso
from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError, hold_folder, write_private
from notary.signing.keyfiles import load_p256, write_private_key
from notary.signing.keys import HeldKey, KeyPlaces, make_first, open_key, read_key, rotate
from notary.signing.keysets import public_jwk
from notary.signing.leases import lease_keys
from notary.signing.make_keys import make_keys
from notary.signing.receipt_keys import ReceiptSigner
from tests.notary.samples import changed, make_issue, make_receipt
from tests.support.dying_rotation import places_in
from tests.support.signed_leases import signed_lease

PURPOSES = ("lease", "grant", "receipt")


@pytest.fixture
def places(tmp_path: Path) -> KeyPlaces:
    """Fresh keys, with their sets in order."""
    make_keys(tmp_path / "state")
    fresh = places_in(tmp_path / "state")
    for place in fresh.each():
        open_key(place)
    return fresh


def listed(place: Any) -> list[dict[str, Any]]:
    return list(json.loads(place.set.read_text())["keys"])


def place_of(places: KeyPlaces, purpose: str) -> Any:
    return getattr(places, purpose)


def holds(held: HeldKey[ec.EllipticCurvePrivateKey], token: str) -> bool:
    """Verify a lease as a front that knows these keys; raise GateError if it refuses the lease."""
    verifier = LeaseVerifier(FrontClock(0), lambda: None)
    verifier.use(changed(NOTHING, lease_keys=lease_keys(held)))
    return verifier.verify(token).principal == "uid:1000"


def lease_of(held: HeldKey[ec.EllipticCurvePrivateKey]) -> str:
    return signed_lease(held, make_issue(), epoch=0, now=time.time(), ttl=300).token


def signer_of(places: KeyPlaces) -> ReceiptSigner:
    return ReceiptSigner(open_key(places.receipt))


@pytest.mark.parametrize("purpose", PURPOSES)
def test_a_rotation_puts_another_key_in_the_place_of_the_old_one(places: KeyPlaces, purpose: str) -> None:
    place = place_of(places, purpose)
    before = place.key.read_bytes()
    old, new = rotate(place)
    assert place.key.read_bytes() != before
    assert stat.S_IMODE(place.key.stat().st_mode) == 0o600
    assert (old.kid, new.kid) == (old.kid, open_key(place).kid)
    assert old.kid != new.kid
    # The private half of the old key is nowhere any more.
    secret = before.splitlines()[1]
    assert not [path for path in place.key.parents[1].rglob("*") if path.is_file() and secret in path.read_bytes()]


@pytest.mark.parametrize("purpose", ["lease", "receipt"])
def test_the_set_says_when_each_key_came_and_went(places: KeyPlaces, purpose: str) -> None:
    place = place_of(places, purpose)
    began = iso(time.time())
    first, second = rotate(place)
    _, third = rotate(place)
    by_kid = {one["kid"]: one for one in listed(place)}
    assert list(by_kid) == [first.kid, second.kid, third.kid]
    assert "retired_at" not in by_kid[third.kid]
    assert began <= by_kid[first.kid]["retired_at"] <= by_kid[third.kid]["created_at"] <= iso(time.time())
    assert began <= by_kid[second.kid]["created_at"] <= by_kid[second.kid]["retired_at"]
    assert stat.S_IMODE(place.set.stat().st_mode) == 0o600


def test_a_lease_key_leaves_its_set_when_no_lease_of_it_can_be_alive(
    places: KeyPlaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, _ = rotate(places.lease)
    rotate(places.receipt)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + LEASE_KEY_KEPT_SECONDS - 10)
    assert old.kid in {one.kid for one in open_key(places.lease).listed}
    monkeypatch.setattr(time, "time", lambda: now + LEASE_KEY_KEPT_SECONDS + 1)
    assert old.kid not in {one.kid for one in open_key(places.lease).listed}
    assert old.kid not in {one["kid"] for one in listed(places.lease)}
    open_key(places.receipt)
    assert len(listed(places.receipt)) == 2


@pytest.mark.parametrize(
    ("purpose", "forget"), [("lease", False), ("grant", False), ("receipt", False), ("lease", True)]
)
def test_a_rotation_that_is_killed_at_any_step_leaves_keys_that_work(
    places: KeyPlaces, tmp_path: Path, purpose: str, forget: bool
) -> None:
    token, receipt = lease_of(open_key(places.lease)), make_receipt(signer_of(places))
    before = open_key(place_of(places, purpose)).kid
    command = [sys.executable, "-m", "tests.support.dying_rotation", str(tmp_path / "state"), str(tmp_path), purpose]
    done = subprocess.run([*command, *["forget"] * forget], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    attempts = int(done.stdout)
    assert attempts > (5 if purpose == "grant" else 20)
    rotated = 0
    for number in range(attempts + 1):
        copied = places_in(tmp_path / str(number))
        place = place_of(copied, purpose)
        kid = public_jwk(place.load(place.key))["kid"]  # whole, at every step
        if place.set is not None:  # and listed before anybody can sign with it
            assert kid in {one["kid"] for one in listed(place)}
        rotated += kid != before
        assert holds(open_key(copied.lease), token) if not forget or kid == before else True
        assert signer_of(copied).status(receipt) == "verified"
        fresh = signer_of(copied)
        assert fresh.status(make_receipt(fresh)) == "verified"
        _, new = rotate(place)
        assert holds(open_key(copied.lease), lease_of(open_key(copied.lease)))
        assert not [
            name for name in (*os.listdir(place.key.parent), *os.listdir(place.key.parents[1])) if name[0] == "."
        ]
        assert new.kid == open_key(place).kid
    assert 0 < rotated < attempts


def test_the_next_open_of_a_key_completes_a_killed_rotation(places: KeyPlaces) -> None:
    place = places.lease
    old = open_key(place)
    # A person, or half a rotation, has put another key in the place of the old one; the set is as it was.
    write_private_key(place.key, ec.generate_private_key(ec.SECP256R1()))
    new = open_key(place)
    by_kid = {one["kid"]: one for one in listed(place)}
    assert set(by_kid) == {old.kid, new.kid}
    assert "retired_at" in by_kid[old.kid]
    assert "retired_at" not in by_kid[new.kid]
    before = place.set.read_bytes() if place.set else b""
    open_key(place)
    assert place.set is not None
    assert place.set.read_bytes() == before


def test_a_key_that_comes_back_is_in_use_again(places: KeyPlaces) -> None:
    first = places.lease.key.read_bytes()
    old, _ = rotate(places.lease)
    write_private(places.lease.key, first)
    assert open_key(places.lease).kid == old.kid
    assert "retired_at" not in next(one for one in listed(places.lease) if one["kid"] == old.kid)


def test_a_set_that_is_full_refuses_the_next_key_and_what_lies_there_goes_on_working(places: KeyPlaces) -> None:
    place = replace(places.receipt, max_set_bytes=2000)
    held = open_key(place)

    def rotate_on() -> None:
        nonlocal held
        for _ in range(20):
            held = rotate(place)[1]

    with pytest.raises(PrivateFileError, match="more than 2000 bytes"):
        rotate_on()
    assert len(held.listed) > 3
    assert (open_key(place).kid, open_key(place).listed) == (held.kid, held.listed)


def test_reading_writes_nothing(places: KeyPlaces) -> None:
    write_private_key(places.lease.key, ec.generate_private_key(ec.SECP256R1()))
    assert places.lease.set is not None
    before = places.lease.set.read_bytes()
    assert len(read_key(places.lease).listed) == 2
    assert places.lease.set.read_bytes() == before


def test_rotations_at_once_take_turns_and_none_is_lost(places: KeyPlaces, tmp_path: Path) -> None:
    keys = tmp_path / "state" / "keys"
    command = [
        sys.executable, "-m", "notary.signing.tend_keys", "--state-dir", str(tmp_path / "state"), "--lease",
        str(keys / "lease.pem"), "--grant", str(keys / "grant.pem"), "--receipt", str(keys / "receipt.pem"),
        "--receipt-set", str(tmp_path / "state" / "receipt-keys.jwks.json"), "rotate", "--purpose", "receipt",
    ]  # fmt: skip
    first = open_key(places.receipt).kid
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    told = [json.loads(process.communicate(timeout=120)[0]) for process in running]
    assert [process.returncode for process in running] == [0] * 4
    by_previous = {one["previous_key_id"]: one["key_id"] for one in told}
    chain = [first]
    while chain[-1] in by_previous:
        chain.append(by_previous[chain[-1]])
    assert [one["kid"] for one in listed(places.receipt)] == chain
    assert len(chain) == 5
    assert open_key(places.receipt).kid == chain[-1]


def test_a_locked_folder_is_waited_for_and_then_given_up(places: KeyPlaces) -> None:
    before = places.lease.key.read_bytes()
    with (
        hold_folder(places.lease.key.parent),
        pytest.raises(PrivateFileError, match="another process is at work in it") as refused,
    ):
        rotate(places.lease, wait_seconds=0.1)
    assert refused.value.exit_code == Exit.LOCKED
    assert places.lease.key.read_bytes() == before
    with hold_folder(places.lease.key.parent):
        for place in places.each():
            open_key(place, wait_seconds=0.0)  # it writes nothing, so it needs no lock of the folder


def test_a_key_is_made_where_there_never_was_one_and_nowhere_else(places: KeyPlaces) -> None:
    place = places.checkpoint
    assert place.set is not None
    before = place.key.read_bytes()
    make_first(place)
    place.set.unlink()
    make_first(place)
    assert place.key.read_bytes() == before, "it is there"
    open_key(place)
    place.key.unlink()
    make_first(place)
    assert not place.key.exists(), "its set says that it was: it is lost"
    place.set.unlink()
    make_first(place)
    assert place.key.read_bytes() != before
    places.grant.key.unlink()
    make_first(places.grant)
    assert not places.grant.key.exists(), "nothing says whether it ever was"


def test_a_folder_that_others_may_look_into_and_not_write_to_will_do(places: KeyPlaces) -> None:
    places.lease.key.parent.chmod(0o755)
    assert rotate(places.lease)[1].kid == open_key(places.lease).kid


def _as_link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (_as_link, "lease.pem: is a link. Name the file that it leads to."),
        (lambda path: path.chmod(0o640), "lease.pem: mode 0640 lets others in. Use chmod 0600."),
        (lambda path: path.parent.chmod(0o770), "keys: mode 0770 lets others in. Use chmod 0700."),
        (lambda path: path.unlink(), "lease.pem: cannot read it: No such file or directory."),
        (lambda path: write_private(path, b"x"), "lease.pem: is not an unencrypted private key in PEM form."),
    ],
    ids=["link", "mode", "folder", "gone", "garbage"],
)
def test_a_key_that_is_not_as_it_must_be_is_not_rotated(places: KeyPlaces, spoil: Any, sentence: str) -> None:
    before = places.lease.set.read_bytes() if places.lease.set else b""
    kid = public_jwk(load_p256(places.lease.key))["kid"]
    spoil(places.lease.key)
    with pytest.raises(PrivateFileError) as refused:
        rotate(places.lease)
    assert str(refused.value).endswith(sentence)
    assert places.lease.set is not None
    assert places.lease.set.read_bytes() == before
    if places.lease.key.is_symlink():
        assert public_jwk(load_p256(places.lease.key))["kid"] == kid
