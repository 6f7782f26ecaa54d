"""Key files and sets of public keys: read strictly, settled around the key in use, refused in a sentence."""

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipc.process.clock import iso
from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError, write_private
from notary.signing.keyfiles import load_ed25519, load_p256, write_private_key
from notary.signing.keysets import (
    ED25519_SET,
    P256_SET,
    ListedKey,
    SetKind,
    public_jwk,
    published,
    read_set,
    settled,
    write_set,
)

NOW = 1_790_000_000.0
RECEIPT_KEYS = [ListedKey(public_jwk(ed25519.Ed25519PrivateKey.generate()), iso(NOW)) for _ in range(4)]
LEASE_KEYS = [ListedKey(public_jwk(ec.generate_private_key(ec.SECP256R1())), iso(NOW)) for _ in range(2)]
GOOD = RECEIPT_KEYS[0].jwk
POINT = LEASE_KEYS[0].jwk


def test_written_keys_are_read_back_with_their_times(tmp_path: Path) -> None:
    path = tmp_path / "set"
    listed = (RECEIPT_KEYS[0], ListedKey(RECEIPT_KEYS[1].jwk, None, iso(NOW)), ListedKey(RECEIPT_KEYS[2].jwk))
    write_set(path, listed)
    assert read_set(path, ED25519_SET) == listed
    write_set(path, LEASE_KEYS)
    assert read_set(path, P256_SET) == tuple(LEASE_KEYS)


def test_where_there_is_no_file_there_are_no_keys(tmp_path: Path) -> None:
    assert read_set(tmp_path / "set", ED25519_SET) == ()


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({**GOOD, "kty": "RSA"}, 'keys[1] is foreign: its kty must be "OKP"'),
        ({**GOOD, "crv": "X25519"}, 'keys[1] is foreign: its crv must be "Ed25519"'),
        ({**GOOD, "use": "enc"}, 'keys[1] is foreign: its use must be "sig"'),
        ({**GOOD, "alg": "ES256"}, 'keys[1] is foreign: its alg must be "EdDSA"'),
        ({**GOOD, "d": "SECRET"}, "keys[1] holds a private key (d), and this set is published"),
        ({**GOOD, "x5t": "x"}, "keys[1] has a member that does not belong here: 'x5t'"),
        ({**GOOD, "\u202e" * 99: 1}, "keys[1] has a member that does not belong here: '\\u202e"),
        ({**GOOD, "x": "AA"}, "keys[1] is no key: x make none"),
        ({**GOOD, "x": "é"}, "keys[1] is no key: x make none"),
        ({**GOOD, "x": 7}, "keys[1] has no x that is a text"),
        ({**GOOD, "kid": None}, "keys[1] has no kid that is a text"),
        ({name: value for name, value in GOOD.items() if name != "crv"}, "keys[1] has no crv that is a text"),
        ({**GOOD, "kid": "another"}, "keys[1] has another kid than its thumbprint (RFC 7638)"),
        ({**GOOD, "created_at": 7}, "keys[1] has no created_at that is a text"),
        ({**GOOD, "retired_at": "then"}, "keys[1] has a retired_at that is not a date and time"),
        (RECEIPT_KEYS[1].jwk, "keys[1] is listed twice"),
        (POINT, 'keys[1] is foreign: its crv must be "Ed25519"'),
    ],
)
def test_an_entry_that_will_not_do_is_refused_with_its_place_and_its_mend(
    tmp_path: Path, entry: dict[str, Any], problem: str
) -> None:
    path = tmp_path / "set"
    write_private(path, json.dumps({"keys": [RECEIPT_KEYS[1].jwk, entry]}).encode())
    with pytest.raises(PrivateFileError) as refused:
        read_set(path, ED25519_SET)
    assert str(refused.value).startswith(f"{path}: {problem}")
    assert str(refused.value).endswith(". Mend or remove this entry.")
    assert refused.value.exit_code == Exit.CONFIG
    assert "SECRET" not in str(refused.value)
    assert str(refused.value).isascii()


@pytest.mark.parametrize(
    "changes",
    [{"y": POINT["x"]}, {"x": "A" * 42, "y": "A" * 44}, {"x": POINT["x"] + "="}],
    ids=["off the curve", "too long", "padded"],
)
def test_coordinates_that_are_no_point_are_no_key(tmp_path: Path, changes: dict[str, str]) -> None:
    write_private(tmp_path / "set", json.dumps({"keys": [POINT | changes]}).encode())
    with pytest.raises(PrivateFileError, match=r"keys\[0\] is no key"):
        read_set(tmp_path / "set", P256_SET)


ANY_JSON: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 7, -1.5, "", "AA", "\u00e9", "\ud800", [], ["a"], {}, {"a": {}}]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.sampled_from([*GOOD, "y", "d", "", "\u202e", "created_at", "retired_at"]), ANY_JSON, max_size=3),
    st.sampled_from([GOOD, POINT, {}]),
    st.sampled_from([ED25519_SET, P256_SET]),
)
def test_any_entry_is_a_key_or_a_sentence(
    tmp_path: Path, changes: dict[str, Any], entry: dict[str, str], kind: SetKind
) -> None:
    (tmp_path / "set").touch(mode=0o600)
    (tmp_path / "set").write_text(json.dumps({"keys": [entry | changes]}))
    problem = ""
    keys: tuple[ListedKey, ...] = ()
    try:
        keys = read_set(tmp_path / "set", kind)
    except PrivateFileError as error:
        problem = str(error)
    assert [one.jwk for one in keys] == ([] if problem else [entry])
    assert not problem or "keys[0] " in problem or "is not a JWKS" in problem


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    write_set(tmp_path / "set", RECEIPT_KEYS)
    (tmp_path / "link").symlink_to("set")
    assert read_set(tmp_path / "link", ED25519_SET) == tuple(RECEIPT_KEYS)
    with pytest.raises(PrivateFileError, match="is a link"):
        write_set(tmp_path / "link", RECEIPT_KEYS[:1])
    assert read_set(tmp_path / "set", ED25519_SET) == tuple(RECEIPT_KEYS)


TIMES = st.none() | st.floats(NOW - 10_000, NOW).map(iso)
SETS = st.lists(
    st.builds(ListedKey, st.sampled_from([one.jwk for one in RECEIPT_KEYS]), TIMES, TIMES),
    unique_by=lambda one: one.kid,
)


@given(SETS, st.sampled_from(RECEIPT_KEYS), st.none() | st.floats(1, 10_000))
def test_a_set_settles_around_the_key_in_use(listed: list[ListedKey], current: ListedKey, keep: float | None) -> None:
    keys = settled(listed, current, NOW, keep)
    assert settled(keys, current, NOW, keep) == keys
    by_kid = {one.kid: one for one in keys}
    assert len(by_kid) == len(keys)
    assert by_kid[current.kid].retired_at is None
    assert set(by_kid) - {current.kid} <= {one.kid for one in listed}
    for one in listed:
        if one.kid == current.kid:
            continue
        if keep is None:
            assert one.kid in by_kid
            # No unknown time is made up: a key from before times were kept may have been retired long ago.
            assert by_kid[one.kid].retired_at == (one.retired_at or (iso(NOW) if one.created_at else None))
        else:
            assert (one.kid in by_kid) == (not one.is_over(NOW, keep))
            assert one.kid not in by_kid or by_kid[one.kid].retired_at is not None


def test_a_retired_key_stays_for_as_long_as_it_is_kept_and_not_longer() -> None:
    old = ListedKey(LEASE_KEYS[0].jwk, iso(NOW - 100), iso(NOW - 60))
    assert old.kid in {one.kid for one in settled((old,), LEASE_KEYS[1], NOW - 0.001, 60)}
    assert old.kid not in {one.kid for one in settled((old,), LEASE_KEYS[1], NOW, 60)}


def test_the_key_in_use_is_shown_first_then_the_latest_and_no_times() -> None:
    shown = published(RECEIPT_KEYS, RECEIPT_KEYS[1].kid)["keys"]
    assert [jwk["kid"] for jwk in shown] == [RECEIPT_KEYS[place].kid for place in (1, 3, 2, 0)]
    assert {frozenset(jwk) for jwk in shown} == {frozenset({"crv", "kty", "x", "kid", "use", "alg"})}


def test_keys_come_back_as_they_were_and_only_as_what_they_are(tmp_path: Path) -> None:
    p256, ed = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()
    write_private_key(tmp_path / "p256", p256)
    write_private_key(tmp_path / "ed", ed)
    assert (tmp_path / "p256").read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----\n")
    assert load_p256(tmp_path / "p256").private_numbers() == p256.private_numbers()
    assert load_ed25519(tmp_path / "ed").private_bytes_raw() == ed.private_bytes_raw()
    with pytest.raises(PrivateFileError, match="is not a P-256 key"):
        load_p256(tmp_path / "ed")
    with pytest.raises(PrivateFileError, match="is not an Ed25519 key"):
        load_ed25519(tmp_path / "p256")


def test_a_file_that_is_no_plain_private_key_is_refused_in_a_sentence(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    contents = {
        "empty": b"",
        "text": b"hello",
        "public": key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "der": key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()),
        "encrypted": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"pass")),
        "cut": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())[:-60],
    }
    others: dict[str, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey] = {
        "p384": ec.generate_private_key(ec.SECP384R1()),
        "rsa": rsa.generate_private_key(65537, 2048),
    }
    for name, content in contents.items():
        write_private(tmp_path / name, content)
    for name, other in others.items():
        write_private(tmp_path / name, other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    for name in (*contents, *others):
        with pytest.raises(
            PrivateFileError, match=rf"{name}: is not an? (unencrypted private key in PEM form|P-256 key)\.$"
        ) as refused:
            load_p256(tmp_path / name)
        assert refused.value.exit_code == Exit.CONFIG
