"""The stored state of witnesses: the last size that each configured key has cosigned, and the reason why it does not go
on."""

import sqlite3

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ipc.keys.verifier_keys import WITNESS, VerifierKey
from ipc.operations.witnesses import WitnessStatus
from ipc.settings import WitnessSettings
from notary.database import DatabaseGone
from notary.ledger import witnesses
from notary.ledger.witnesses import ConfiguredWitnesses, Cosigned


def key(name: str, seed: bytes = b"w") -> str:
    private = Ed25519PrivateKey.from_private_bytes(seed * 32)
    return VerifierKey(name, WITNESS, private.public_key().public_bytes_raw()).text


ROWS = [WitnessSettings(name=name, url=f"https://{name}.test", key=key(name)) for name in ("w2", "w1")]
KEPT, OTHER = Cosigned(key("w1"), 7, 1_790_000_000), key("w1", b"o")


def test_cosignatures_of_keys_that_are_not_configured_are_forgotten() -> None:
    known = ConfiguredWitnesses(
        ROWS, {"w1": KEPT, "w2": Cosigned(key("w2", b"o"), 9, 0), "w3": Cosigned(key("w3"), 9, 0)}
    )
    assert known.cosigned == {"w1": KEPT}
    assert ConfiguredWitnesses(ROWS).cosigned == {}


def test_witnesses_are_listed_in_configured_order_with_problems_until_they_cosign() -> None:
    known = ConfiguredWitnesses(ROWS, {"w1": KEPT})
    known.complain("w2", "no\x1b answer")
    cosigned = WitnessStatus("w1", 7, "2026-09-21T14:13:20.000Z", None)
    assert known.status() == (WitnessStatus("w2", None, None, "no answer"), cosigned)
    known.follow("w2", Cosigned(key("w2"), 8, 1_790_000_000))
    assert known.status() == (WitnessStatus("w2", 8, "2026-09-21T14:13:20.000Z", None), cosigned)


def test_a_witness_that_has_cosigned_more_by_the_same_key_is_not_set_back(connection: sqlite3.Connection) -> None:
    assert witnesses.read(connection) == {}
    later, larger, others = Cosigned(KEPT.key, 7, 1_790_000_001), Cosigned(KEPT.key, 8, 0), Cosigned(OTHER, 3, 0)
    for fresh in (KEPT, later, larger, others):
        assert witnesses.keep(connection, "w1", fresh) == fresh
        assert witnesses.read(connection) == {"w1": fresh}
    assert witnesses.keep(connection, "w2", KEPT) == KEPT
    assert witnesses.keep(connection, "w1", Cosigned(others.key, 2, 9)) == others
    assert witnesses.read(connection) == {"w1": others, "w2": KEPT}


def test_what_makes_no_sense_is_refused(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO meta (key, value) VALUES ('witnesses', '{\"w1\": 1}')")
    with pytest.raises(DatabaseGone):
        witnesses.read(connection)
