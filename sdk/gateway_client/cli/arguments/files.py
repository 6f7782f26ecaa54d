"""Files that a command line names: read whole and within a bound, where - is standard input, or written."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gateway_client.cli.exits import usage
from gateway_client.errors import ProtocolViolation
from gateway_client.evidence.receipts import ed25519_keys
from gateway_client.wire.decoding import parse_json

MAX_BYTES = 256 * 1024 * 1024
MAX_KEYS_BYTES = 4 * 1024 * 1024


def read(file: Path, max_bytes: int = MAX_BYTES, mend: str = "verify it in parts") -> bytes:
    """The bytes of a file. Raises Failure usage for one that is too large, OSError."""
    with sys.stdin.buffer if str(file) == "-" else file.open("rb") as opened:
        data = opened.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise usage(f"{file} is larger than {max_bytes} bytes", mend)
    return data


@contextmanager
def written(file: Path) -> Iterator[None]:
    """Writing this file: an OSError, of a full disk say, names it where the system names none. Raises OSError."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(file)
        raise


def jwks_in(file: Path) -> dict[str, Any]:
    """The JWKS in a file. Raises Failure usage, OSError."""
    jwks = json_of(read(file, MAX_KEYS_BYTES, "name a file of keys"), str(file))
    try:
        if isinstance(jwks, dict):
            ed25519_keys(jwks)
            return jwks
    except ValueError:
        pass
    raise usage(f"{file}: not a JWKS")


def json_of(data: bytes, name: str) -> Any:
    """The JSON value in the file of this name. Raises Failure usage."""
    try:
        return parse_json(data, name)
    except ProtocolViolation:
        raise usage(f"{json.dumps(name)} is not JSON") from None
