"""Credentials of a dev gateway: made at the first start, kept in the state directory, mode 0600.

The supervisor reads no key: signing keys and the operator's key pair are made by a process of their own
(`notary.signing.make_keys`), which tells the thumbprint alone. The operator's API key and the example secrets are
random texts.
"""

import json
import secrets
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec

from ipc.process.exits import Exit
from ipc.settings import OperatorSettings
from supervisor.dev.private_files import keep_private
from supervisor.programs import INTERPRETER
from supervisor.refusal import Refused
from supervisor.settings.sections.operators import CredentialRefused, operator_settings

OPERATOR = "dev"
MAKE_SECONDS = 60.0


class DevCredentials(msgspec.Struct, frozen=True):
    """Where the credentials of a dev gateway lie. `api_key` is for the ready line only."""

    operator: OperatorSettings
    api_key: str
    api_key_file: Path
    private_key_file: Path
    secrets_file: Path
    lease_key: Path
    grant_key: Path
    receipt_key: Path
    receipt_jwks: Path


class _MadeKeys(msgspec.Struct):
    operator_jkt: str


def dev_credentials(folder: Path, make_keys: Callable[[Path], str]) -> DevCredentials:
    """Make the missing keys and files in `folder`; return the paths of all. Raises Refused.

    `make_keys` makes the keys and returns JSON with `operator_jkt`.
    """
    api_key_file, secrets_file = folder / "operator.key", folder / "secrets.json"
    try:
        (folder / "files").mkdir(mode=0o700, exist_ok=True)
        (folder / "run").mkdir(mode=0o700, exist_ok=True)
        api_key = keep_private(api_key_file, lambda: f"key-{OPERATOR}-{secrets.token_hex(16)}\n").strip()
        keep_private(secrets_file, _example_secrets)
    except OSError as error:
        raise Refused(Exit.NO_PERMISSION, f"credentials in {folder} can't be made or read: {error.strerror}.") from None
    try:
        made = msgspec.json.decode(make_keys(folder), type=_MadeKeys)
        operator = operator_settings({"name": OPERATOR, "api_key": api_key, "dpop_jkt": made.operator_jkt})
    except msgspec.MsgspecError as error:
        raise Refused(Exit.FAILED, f"the keys in {folder} could not be made: {error}.") from None
    except CredentialRefused as refused:
        raise Refused(Exit.CONFIG, f"{api_key_file} {refused.what} Remove it to get a new one.") from None
    return DevCredentials(
        operator=operator,
        api_key=api_key,
        api_key_file=api_key_file,
        private_key_file=folder / "operator.pem",
        secrets_file=secrets_file,
        lease_key=folder / "keys" / "lease.pem",
        grant_key=folder / "keys" / "grant.pem",
        receipt_key=folder / "keys" / "receipt.pem",
        receipt_jwks=folder / "receipt-keys.jwks.json",
    )


def make_keys(folder: Path) -> str:
    """Run the process that makes keys and return what it prints. Raises Refused."""
    failing = f"the keys in {folder} could not be made"
    done = run_key_program("notary.signing.make_keys", ["--state-dir", str(folder)], failing)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        code = Exit.NO_PERMISSION if done.returncode == Exit.NO_PERMISSION else Exit.FAILED
        raise Refused(code, f"{failing}: {last[0]}")
    return done.stdout


def run_key_program(
    module: str, arguments: list[str], failing: str, given: str = "", *, seconds: float = MAKE_SECONDS
) -> "subprocess.CompletedProcess[str]":
    """Run one of the programs that hold keys to its end, `given` on its standard input. Raises Refused, beginning
    with `failing`, if the program can't be run."""
    try:
        return subprocess.run(
            [*INTERPRETER, module, *arguments],
            check=False,
            input=given,
            capture_output=True,
            text=True,
            cwd="/",
            env={},
            timeout=seconds,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(Exit.FAILED, f"{failing}: {error}.") from None


def _example_secrets() -> str:
    names = ("upstream_token", "bank_token")
    return json.dumps({name: secrets.token_urlsafe(24) for name in names}, indent=2) + "\n"
