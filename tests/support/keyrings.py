"""A keyring of its own, for tests of what reads keys beside other things."""

from pathlib import Path

from frontend.auth.lease import LeaseAuthority
from frontend.auth.lease_keys import LeaseKeys
from frontend.auth.make_keys import make_keys
from frontend.calls.journal import Journal
from frontend.clock import SystemClock
from frontend.evidence.grants import GrantSigner
from frontend.evidence.ledger import Ledger
from frontend.evidence.signing import ReceiptSigner
from frontend.keyring import Keyring, open_keys
from frontend.telemetry.weakened import Weakened
from tests.support.dying_rotation import places_in


def keyring_in(folder: Path, ledger: Ledger) -> Keyring:
    """Keys, made in `folder`, with the services that use them."""
    make_keys(folder)
    places, clock = places_in(folder), SystemClock(0)
    keys = open_keys(places)
    leases = LeaseAuthority(LeaseKeys(keys.lease.private, keys.lease.listed), clock, 300)
    signer = ReceiptSigner(keys.receipt.private, keys.receipt.jwks())
    journal = Journal(clock, Weakened(dev_mode=True), ledger)
    return Keyring(places, keys, leases, GrantSigner(keys.grant.private), signer, journal)
