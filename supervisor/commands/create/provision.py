"""`gateway keys make` and `gateway init`: the keys that a production configuration must name, made once in a folder.

Keys are made by the process that makes them for `gateway dev` too (supervisor/dev/keys.py); the API key is a random
text that is shown once, while its hash goes into the configuration. Existing files are kept.
"""

import hashlib
import re
import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec.structs import asdict

from ipc.process.exits import Exit
from supervisor.refusal import Refused

_NAME = re.compile(r"[a-z0-9][a-z0-9_.]{0,63}")

_TOLD = """\
Keys are in {folder}; they are kept when this runs again. For the configuration:

lease_signing_key_path = "{folder}/keys/lease.pem"
grant_signing_key_path = "{folder}/keys/grant.pem"
receipt_signing_key_path = "{folder}/keys/receipt.pem"
receipt_keys_jwks_path = "{folder}/receipt-keys.jwks.json"

[[operators]]
name = "{name}"
api_key_sha256 = "{digest}"
dpop_jkt = "{jkt}"

For the operator {name}, and for no other: the private key {folder}/operator.pem (move it to the operator's own
machine) and the API key, which is not kept anywhere and not shown again:

{api_key}
"""


class _ProvisionedKeys(msgspec.Struct):
    operator_jkt: str


class Provisioned(msgspec.Struct, frozen=True):
    """Where keys are, and an operator's credential. `api_key` is shown once and kept nowhere."""

    folder: Path
    name: str
    digest: str
    jkt: str
    api_key: str


def provision(folder: Path, name: str, make_keys: Callable[[Path], str]) -> str:
    """Make keys and an operator's credential; return what to tell. Raises Refused."""
    return _TOLD.format(**asdict(make_credentials(folder, name, make_keys)))


def make_credentials(folder: Path, name: str, make_keys: Callable[[Path], str]) -> Provisioned:
    """Make keys and an operator's credential; keep keys that are there. Raises Refused."""
    if not _NAME.fullmatch(name):
        raise Refused(Exit.USAGE, f"{name!r} is no operator name; use lower-case letters, digits, _ and . (no dash).")
    whole = folder.absolute()
    try:
        whole.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(Exit.NO_PERMISSION, f"{whole} can't be made: {error.strerror}.") from None
    try:
        jkt = msgspec.json.decode(make_keys(whole), type=_ProvisionedKeys).operator_jkt
    except msgspec.MsgspecError as error:
        raise Refused(Exit.FAILED, f"the keys in {whole} could not be made: {error}.") from None
    api_key = f"key-{name}-{secrets.token_hex(16)}"
    digest = hashlib.sha256(api_key.encode()).hexdigest()
    return Provisioned(whole, name, digest, jkt, api_key)
