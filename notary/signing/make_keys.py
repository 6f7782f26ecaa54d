"""`python -m notary.signing.make_keys --state-dir DIR`: the keys that a gateway needs, made where they are missing.

Makes `keys/lease.pem`, `keys/grant.pem` (P-256), `keys/receipt.pem`, `keys/checkpoint.pem` (Ed25519), the sets
`receipt-keys.jwks.json` and `checkpoint-keys.jwks.json`, and `operator.pem` (P-256), all with mode 0600, and prints one
line, `{"operator_jkt": "…"}`. Existing keys are checked and kept: a key is never overwritten, and the sets only grow.
A process of its own, because the supervisor, who asks for it, holds no cryptography.
"""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError, check_folder, hold_folder, make_folder
from notary.signing.keyfiles import PrivateKey, load_ed25519, load_p256, write_private_key
from notary.signing.keys import TURN_SECONDS, checkpoint_place, receipt_place, settle_key
from notary.signing.keysets import public_key_of

K = TypeVar("K", bound=PrivateKey)


def _new_p256() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _kept_or_new(path: Path, load: Callable[[Path], K], generate: Callable[[], K]) -> K:
    if not os.path.lexists(path):
        write_private_key(path, generate())
    # Read back even when it was just written: what will be used is what lies on the disk.
    return load(path)


def make_keys(state_dir: Path) -> str:
    """Make what is missing in `state_dir`; the thumbprint of the operator's key. Raises KeyFileError."""
    keys = state_dir / "keys"
    make_folder(state_dir)
    check_folder(state_dir, is_private=False)
    make_folder(keys)
    check_folder(keys, is_private=True)
    with hold_folder(keys, wait_seconds=TURN_SECONDS):
        _kept_or_new(keys / "lease.pem", load_p256, _new_p256)
        _kept_or_new(keys / "grant.pem", load_p256, _new_p256)
        _kept_or_new(keys / "receipt.pem", load_ed25519, ed25519.Ed25519PrivateKey.generate)
        settle_key(receipt_place(keys / "receipt.pem", state_dir / "receipt-keys.jwks.json"))
        _kept_or_new(keys / "checkpoint.pem", load_ed25519, ed25519.Ed25519PrivateKey.generate)
        settle_key(checkpoint_place(keys / "receipt.pem", state_dir))
        operator = _kept_or_new(state_dir / "operator.pem", load_p256, _new_p256)
    return public_key_of(operator).jkt


def main(arguments: list[str] | None = None) -> int:
    """Entry point. Returns an exit code of ipc/process/exits.py; the sentence that explains it goes to standard
    error."""
    parser = argparse.ArgumentParser(prog="python -m notary.signing.make_keys", description="Make missing keys.")
    parser.add_argument("--state-dir", required=True, type=Path, metavar="DIR", help="folder that the keys live in")
    state_dir: Path = parser.parse_args(arguments).state_dir
    try:
        jkt = make_keys(state_dir.absolute())
    except PrivateFileError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(msgspec.json.encode({"operator_jkt": jkt}).decode())
    return Exit.OK


if __name__ == "__main__":
    sys.exit(main())
