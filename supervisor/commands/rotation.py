"""`gateway keys rotate` and `gateway keys list`: the signing keys of one gateway, running or not.

The supervisor reads no key: a process of its own does (`notary.signing.tend_keys`) and tells ids and times. No
restart is needed: a running gateway notices that its files have changed.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from ipc.keys.key_reports import KeyProblem, KeyRow, RotatedKey
from ipc.process.exits import Exit
from ipc.settings import Settings
from supervisor.dev.keys import run_key_program
from supervisor.dev.settings import DevOptions, load_dev
from supervisor.refusal import Refused
from supervisor.settings.config import Loaded, check, open_document

T = TypeVar("T")

_PREVIOUS = {
    "lease": "leases that it signed are accepted until they expire, {until} at the latest",
    "grant": "calls that it let through end as they would have",
    "receipt": "receipts that it signed verify as before, its public half stays listed",
    "checkpoint": "checkpoints that it signed verify as before; give the next verifier key to those who hold the log "
    "against its host, witnesses first",
}
_FORGOTTEN = "leases that it signed are refused from now on"
_COLUMNS = ("PURPOSE", "STATE", "KEY ID", "CREATED", "RETIRED", "FILE")


def load_named(config: Path | None, state_dir: Path | None, environ: Mapping[str, str]) -> Loaded:
    """Settings of the gateway that a command line names: a dev gateway by its state directory. Raises Refused."""
    if state_dir is not None:
        return load_dev(DevOptions(state_dir=state_dir, config=config), environ)
    if config is None:
        raise Refused(Exit.USAGE, "name the gateway: --config FILE, or --state-dir DIR for a dev gateway.")
    return check(*open_document(config, environ))


def rotate(settings: Settings, purpose: str, *, forget_previous: bool) -> str:
    """Make another key; what to tell. Raises Refused."""
    if forget_previous and purpose != "lease":
        raise Refused(Exit.USAGE, "--forget-previous is for leases alone: receipts must stay verifiable.")
    options = ["--forget-previous"] if forget_previous else []
    made = _told(settings, ["rotate", "--purpose", purpose, *options], RotatedKey)
    before = _FORGOTTEN if forget_previous else _PREVIOUS[purpose].format(until=made.previous_until)
    return (
        f"{purpose}: the next key is {made.key_id}, in {made.path}.\n"
        f"The key before, {made.previous_key_id}, is destroyed; {before}.\n"
        "A running gateway follows within two seconds, without a restart, and leaves a KeysRotated event.\n"
    )


def listing(settings: Settings) -> str:
    """A table of all keys. Raises Refused."""
    keys = _told(settings, ["list"], list[KeyRow])
    rows = [
        (one.purpose, one.state, one.key_id, one.created_at or "-", one.retired_at or "-", one.path) for one in keys
    ]  # fmt: skip
    widths = [max(len(row[place]) for row in (_COLUMNS, *rows)) for place in range(len(_COLUMNS))]
    return "".join(_line(row, widths) for row in (_COLUMNS, *rows))


def key_problems(settings: Settings, purposes: Sequence[str]) -> list[tuple[str, str]]:
    """(setting, sentence) of each problem with these keys. Raises Refused when they could not be looked at."""
    if not purposes:
        return []
    wanted = [part for purpose in purposes for part in ("--purpose", purpose)]
    return [
        ("receipt_keys_jwks_path" if one.in_set and one.purpose == "receipt" else _SETTINGS[one.purpose], one.sentence)
        for one in _told(settings, ["check", *wanted], list[KeyProblem])
    ]


_SETTINGS = {
    "lease": "lease_signing_key_path", "grant": "grant_signing_key_path", "receipt": "receipt_signing_key_path",
    "checkpoint": "receipt_signing_key_path",
}  # fmt: skip


def with_key_paths(settings: Settings) -> Settings:
    """The same, with the paths at which a dev gateway keeps its keys where none are named."""
    state = Path(settings.state_dir)
    return msgspec.structs.replace(
        settings,
        lease_signing_key_path=settings.lease_signing_key_path or str(state / "keys" / "lease.pem"),
        grant_signing_key_path=settings.grant_signing_key_path or str(state / "keys" / "grant.pem"),
        receipt_signing_key_path=settings.receipt_signing_key_path or str(state / "keys" / "receipt.pem"),
        receipt_keys_jwks_path=settings.receipt_keys_jwks_path or str(state / "receipt-keys.jwks.json"),
    )


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n"


def _told(settings: Settings, command: list[str], kind: type[T]) -> T:
    named = with_key_paths(settings)
    places = {
        "--state-dir": named.state_dir,
        "--lease": named.lease_signing_key_path,
        "--grant": named.grant_signing_key_path,
        "--receipt": named.receipt_signing_key_path,
        "--receipt-set": named.receipt_keys_jwks_path,
    }
    arguments = [str(part) for pair in places.items() for part in pair]
    done = run_key_program("notary.signing.tend_keys", [*arguments, *command], "the keys could not be reached")
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        known = done.returncode in {Exit.CONFIG, Exit.NO_PERMISSION, Exit.LOCKED}
        raise Refused(Exit(done.returncode) if known else Exit.FAILED, reason)
    try:
        return msgspec.json.decode(done.stdout, type=kind)
    except msgspec.MsgspecError as error:
        raise Refused(Exit.FAILED, f"the answer about the keys could not be read: {error}.") from None
