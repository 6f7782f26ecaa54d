"""The processes that hold keys and the database: every descriptor, every mapping and all memory of front and notary.

Looked at from outside, through the kernel's own account of them, after calls of every kind have been served.
"""

import base64
import os

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.gateway import Gateway
from tests.support.processes import FRONT_MEMORY, descriptors, mapped_files, memory_of, pids

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may look into a process that is not dumpable")

PURPOSES = ("lease", "grant", "receipt", "checkpoint")


@pytest.fixture(scope="module")
def gate(watched: Gateway) -> Gateway:
    """The gateway that is looked at from outside."""
    return watched


def secrets_of(gate: Gateway) -> dict[str, dict[str, bytes]]:
    """Purpose -> form -> bytes of a private key as a process may hold it in memory."""
    by_purpose = {}
    for purpose in PURPOSES:
        pem = (gate.state / "keys" / f"{purpose}.pem").read_bytes()
        key = serialization.load_pem_private_key(pem, None)
        if isinstance(key, EllipticCurvePrivateKey):
            scalar = key.private_numbers().private_value
            raw = scalar.to_bytes(32, "big")
            forms = {"scalar": raw, "limbs": scalar.to_bytes(32, "little")}
        else:
            assert isinstance(key, Ed25519PrivateKey)
            raw = key.private_bytes_raw()
            forms = {"seed": raw}
        der = base64.b64decode(b"".join(line for line in pem.splitlines() if not line.startswith(b"-")))
        text = base64.urlsafe_b64encode(raw).rstrip(b"=")
        by_purpose[purpose] = {**forms, "pem": pem.splitlines()[1], "der": der, "jwk": text}
    return by_purpose


def held_of(pid: int, secrets: dict[str, dict[str, bytes]]) -> set[tuple[str, str]]:
    """(purpose, form) of each piece of a private key that lies in a process' memory."""
    looked_for = {(purpose, form): text for purpose, forms in secrets.items() for form, text in forms.items()}
    return {name for piece in memory_of(pid, "r") for name, text in looked_for.items() if text in piece}


def files_of(pid: int) -> set[str]:
    """Names of the files of the state folder, and of every other file, that a process holds open or mapped."""
    return {what for what in [*descriptors(pid).values(), *mapped_files(pid)] if what.startswith("/")}


def test_the_memory_of_the_front_holds_no_piece_of_a_signing_key(gate: Gateway) -> None:
    assert held_of(pids(gate)["front 1"], secrets_of(gate)) == set()


def test_the_memory_of_the_notary_holds_each_signing_key(gate: Gateway) -> None:
    """The search above is valid: it finds the keys in the process that holds them."""
    held = held_of(pids(gate)["notary"], secrets_of(gate))
    assert held >= {("lease", "limbs"), ("grant", "limbs"), ("receipt", "seed")}


def test_no_other_process_holds_a_signing_key(gate: Gateway) -> None:
    secrets = secrets_of(gate)
    others = {name: pid for name, pid in pids(gate).items() if name != "notary"}
    assert {name: held for name, pid in others.items() if (held := held_of(pid, secrets))} == {}


def test_the_front_has_no_file_of_the_database_open_or_mapped_and_no_key_file(gate: Gateway) -> None:
    files = files_of(pids(gate)["front 1"])
    assert {file for file in files if ".sqlite3" in file or file.startswith(f"{gate.state}/keys")} == set()
    assert {file for file in files if file.startswith(f"{gate.state}/")} == set()


def test_the_front_has_sockets_and_an_event_queue_and_nothing_else(gate: Gateway) -> None:
    held = descriptors(pids(gate)["front 1"])
    assert [held.pop(number) for number in (0, 1, 2)] == ["/dev/null", str(gate.log), str(gate.log)]
    others = {what for what in held.values() if not what.startswith("socket:")}
    assert others == {"anon_inode:[eventpoll]", FRONT_MEMORY}


def test_no_process_but_the_notary_has_a_file_of_the_database(gate: Gateway) -> None:
    holders = {name for name, pid in pids(gate).items() if any(".sqlite3" in file for file in files_of(pid))}
    assert holders == {"notary"}
