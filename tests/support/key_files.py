"""Keys of a running gateway as a test sees them from outside: the command that rotates, and public sets."""

import subprocess
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.support.gateway import Gateway, wait_for
from tests.support.processes import GATEWAY

PURPOSES = ("lease", "grant", "receipt", "checkpoint")


def keys_command(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """`gateway keys …` to its end."""
    command = [GATEWAY, "keys", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL)


def rotations(gate: Gateway, purpose: str | None = None) -> list[dict[str, Any]]:
    """Events of rotations that took effect, newest first."""
    events = gate.events(event_type="KeysRotated", limit=1000)
    return [event for event in events if purpose in (None, event["key_purpose"])]


def lease_key_ids(gate: Gateway) -> list[str]:
    """The keys of /.well-known/jwks.json, the current key first."""
    return [key["kid"] for key in gate.http.get("/.well-known/jwks.json").json()["keys"]]


def follow(gate: Gateway, purpose: str, before: int) -> list[dict[str, Any]]:
    """Wait until the gateway has followed a rotation; `before` events were there."""

    def found() -> list[dict[str, Any]] | None:
        events = rotations(gate, purpose)
        return events if len(events) > before else None

    return list(wait_for(found, f"the gateway to follow the rotation of the {purpose} key"))


def new_key(path: Path) -> None:
    """Put another P-256 key there as a person would: beside it first, then in its place."""
    beside = path.with_suffix(".new")
    beside.touch(mode=0o600)
    key = ec.generate_private_key(ec.SECP256R1())
    beside.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    beside.rename(path)
