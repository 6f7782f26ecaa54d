"""The processes that hold keys and the database: every descriptor, every mapping and all memory of front and notary.

Looked at from outside, through the kernel's own account of them, after calls of every kind have been served.
"""

import base64
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.gateway import Gateway, config_for, gateway
from tests.support.manifests import patient
from tests.support.processes import FRONT_MEMORY, descriptors, mapped_files, memory_of, pids
from tests.support.upstream import Upstream

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may look into a process that is not dumpable")

PURPOSES = ("lease", "grant", "receipt", "checkpoint")
DATABASE = ("ledger.sqlite3", "ledger.sqlite3-wal", "ledger.sqlite3-shm")


@pytest.fixture(scope="module")
def gate(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that has issued leases, executed, refused, held, approved and shown a receipt."""
    folder: Path = tmp_path_factory.mktemp("gate")
    with gateway(folder, config_for(up.address, patient(folder / "actions"))) as running:
        agent, operator = running.agent(max_calls=50), running.operator()
        for _ in range(10):
            assert agent.execute("text_digest", {"text": "x"}).status_code == 200
        assert agent.execute("no_such_action").status_code == 404
        held = agent.execute("payment_transfer", {"to": "acct-7", "amount_cents": 25000, "currency": "EUR"})
        assert held.status_code == 202
        assert operator.post(f"/v1/approvals/{held.json()['approval_id']}/approve").status_code == 200
        receipt = agent.execute("text_digest", {"text": "y"}).json()["receipt_id"]
        assert operator.get(f"/v1/receipts/{receipt}").status_code == 200
        assert operator.get("/v1/audit/verify").json()["intact"] is True
        yield running


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


def test_the_notary_has_the_database_and_no_listening_socket(gate: Gateway) -> None:
    notary = pids(gate)["notary"]
    files = files_of(notary)
    assert {str(gate.state / name) for name in DATABASE} <= files
    inodes = {what.removeprefix("socket:[").rstrip("]") for what in descriptors(notary).values() if "socket:" in what}
    assert inodes & {*internet_sockets(notary), *listening_unix_sockets(notary)} == set()


def test_no_process_but_the_notary_has_a_file_of_the_database(gate: Gateway) -> None:
    holders = {name for name, pid in pids(gate).items() if any(".sqlite3" in file for file in files_of(pid))}
    assert holders == {"notary"}


def internet_sockets(pid: int) -> list[str]:
    """Inodes of TCP and UDP sockets in a process' network."""
    tables = (Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6", "udp", "udp6"))
    return [line.split()[9] for lines in tables for line in lines]


def listening_unix_sockets(pid: int) -> list[str]:
    """Inodes of Unix sockets that have a path."""
    lines = Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]
    return [line.split()[6] for line in lines if len(line.split()) > 7]
