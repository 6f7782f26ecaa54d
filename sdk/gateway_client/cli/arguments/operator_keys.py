"""Operators' keys as a command line names them: by thumbprint, or by a file with the public key."""

import json
import re
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from gateway_client.cli.arguments.files import read
from gateway_client.cli.exits import usage
from gateway_client.evidence.approval_signatures import thumbprint
from gateway_client.keys import b64url

MAX_FILE = 65_536
_THUMBPRINT = re.compile(r"[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]", re.ASCII)


def thumbprint_of(text: str) -> str:
    """The thumbprint, if the text is one. Raises Failure usage otherwise."""
    if not _THUMBPRINT.fullmatch(text):
        raise usage("--operator-jkt: not the thumbprint of a key", "43 characters, as dpop_jkt has them")
    return text


def thumbprint_in(file: Path) -> str:
    """The thumbprint of the P-256 public key in a file, PEM or JWK. Raises Failure usage, OSError."""
    data = read(file, MAX_FILE, "name a file with a public key")
    try:
        if data.lstrip().startswith(b"{"):
            return thumbprint(json.loads(data))
        key = serialization.load_pem_public_key(data)
        if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
            numbers = key.public_numbers()
            x, y = (b64url(one.to_bytes(32, "big")) for one in (numbers.x, numbers.y))
            return thumbprint({"kty": "EC", "crv": "P-256", "x": x, "y": y})
    except (ValueError, RecursionError, UnsupportedAlgorithm):
        pass
    raise usage(f"{file}: no P-256 public key", "PEM as of openssl ec -pubout, or a JWK; or --operator-jkt")
