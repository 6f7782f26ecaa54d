"""`python -m frontend.auth.make_keys --state-dir DIR`: the keys that a gateway needs, made where they are missing.

Makes `keys/lease.pem`, `keys/grant.pem` (P-256), `keys/receipt.pem` (Ed25519), `receipt-keys.jwks.json` and
`operator.pem` (P-256), all with mode 0600, and prints one line, `{"operator_jkt": "…"}`. What is there is checked and
kept: a key is never overwritten, and the set of receipt keys only grows. A process of its own, because the supervisor,
who asks for it, holds no cryptography.
"""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from frontend.auth.encoding import b64url_encode
from frontend.auth.keyfiles import (
    KeyFileError,
    PrivateKey,
    check_folder,
    hold_folder,
    load_ed25519,
    load_p256,
    make_folder,
    read_private,
    write_private,
    write_private_key,
)
from frontend.auth.keys import public_key_of, thumbprint
from ipc.exits import Exit

K = TypeVar("K", bound=PrivateKey)


def _new_p256() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _kept_or_new(path: Path, load: Callable[[Path], K], generate: Callable[[], K]) -> K:
    if not os.path.lexists(path):
        write_private_key(path, generate())
    # Read back even when it was just written: what will be used is what lies on the disk.
    return load(path)


def _receipt_jwk(key: ed25519.Ed25519PrivateKey) -> dict[str, str]:
    members = {"crv": "Ed25519", "kty": "OKP", "x": b64url_encode(key.public_key().public_bytes_raw())}
    return {**members, "kid": thumbprint(members), "use": "sig", "alg": "EdDSA"}


def _list_receipt_key(path: Path, jwk: dict[str, str]) -> None:
    keys: list[dict[str, Any]] = []
    if os.path.lexists(path):
        try:
            keys = msgspec.json.decode(read_private(path), type=dict[str, list[dict[str, Any]]])["keys"]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
            raise KeyFileError(f"{path}: is not a JWKS, an object with an array named keys.", Exit.CONFIG) from None
        if any(known.get("kid") == jwk["kid"] for known in keys):
            return
    text = msgspec.json.format(msgspec.json.encode({"keys": [*keys, jwk]}), indent=2)
    write_private(path, text + b"\n")


def make_keys(state_dir: Path) -> str:
    """Make what is missing in `state_dir`; the thumbprint of the operator's key. Raises KeyFileError."""
    keys = state_dir / "keys"
    make_folder(state_dir)
    check_folder(state_dir, is_private=False)
    make_folder(keys)
    check_folder(keys, is_private=True)
    with hold_folder(keys):
        _kept_or_new(keys / "lease.pem", load_p256, _new_p256)
        _kept_or_new(keys / "grant.pem", load_p256, _new_p256)
        receipt = _kept_or_new(keys / "receipt.pem", load_ed25519, ed25519.Ed25519PrivateKey.generate)
        _list_receipt_key(state_dir / "receipt-keys.jwks.json", _receipt_jwk(receipt))
        operator = _kept_or_new(state_dir / "operator.pem", load_p256, _new_p256)
    return public_key_of(operator).jkt


def main(arguments: list[str] | None = None) -> int:
    """Entry point. Returns an exit code of ipc/exits.py; the sentence that explains it goes to standard error."""
    parser = argparse.ArgumentParser(prog="python -m frontend.auth.make_keys", description="Make missing keys.")
    parser.add_argument("--state-dir", required=True, type=Path, metavar="DIR", help="folder that the keys live in")
    state_dir: Path = parser.parse_args(arguments).state_dir
    try:
        jkt = make_keys(state_dir.absolute())
    except KeyFileError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(msgspec.json.encode({"operator_jkt": jkt}).decode())
    return Exit.OK


if __name__ == "__main__":
    sys.exit(main())
