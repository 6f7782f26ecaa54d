"""`python -m notary.signing.tend_keys rotate|list|check …`: make another signing key, list the keys, or tell their
faults.

Prints JSON on standard output: for `rotate` one object, for `list` and `check` one array. A failure is one
sentence on standard error, with an exit code of ipc/process/exits.py. A process of its own, because the supervisor,
which asks for it, holds no cryptography. Never shows a private key.
"""

import argparse
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from ipc.keys.key_reports import KeyProblem, KeyRow, RotatedKey
from ipc.process.clock import iso, parse_iso
from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError
from notary.signing.keys import KeyPlace, KeyPlaces, key_places, never_was, read_key, rotate


def rotated(place: KeyPlace[Any], *, forget: bool) -> RotatedKey:
    """Rotate one key. Raises KeyFileError."""
    _check_user(place.key)
    old, new = rotate(place, forget=forget)
    until = None
    retired = next((one.retired_at for one in new.listed if one.kid == old.kid), None)
    if retired is not None and place.keep_seconds is not None:
        until = iso(parse_iso(retired) + place.keep_seconds)
    return RotatedKey(place.purpose, new.kid, str(place.key), old.kid, until)


def _check_user(path: Path) -> None:
    """Only the user whom the gateway runs as makes files that the gateway accepts."""
    try:
        owner = path.stat().st_uid
    except OSError as error:
        text = f"{path}: cannot read it: {error.strerror}. gateway keys make makes the first ones."
        raise PrivateFileError(text, Exit.NO_PERMISSION) from None
    if owner != os.geteuid():
        text = f"{path}: belongs to user id {owner}. Run this as that user, as the gateway does."
        raise PrivateFileError(text, Exit.NO_PERMISSION)


def rows(places: KeyPlaces) -> list[KeyRow]:
    """Every key, the current one of each purpose first, then the latest first. Raises KeyFileError."""
    table = []
    for place in places.each():
        if place is places.checkpoint and not place.key.exists():
            continue  # the first start makes it
        held = read_key(place)
        listed = {one.kid: one for one in held.listed}
        for jwk in held.jwks()["keys"]:
            one = listed[jwk["kid"]]
            is_current = one.kid == held.kid
            state, path = ("current", place.key) if is_current else ("previous", place.set)
            table.append(KeyRow(place.purpose, state, one.kid, one.created_at, one.retired_at, str(path)))
    return table


def problems(places: KeyPlaces, purposes: Iterable[str]) -> list[KeyProblem]:
    """Faults that would refuse a start. Changes no file."""
    told = []
    for place in places.each():
        if place.purpose not in purposes or (place is places.checkpoint and never_was(place)):
            continue
        try:
            read_key(place)
        except PrivateFileError as error:
            told.append(KeyProblem(place.purpose, str(error).startswith(f"{place.set}:"), str(error)))
    return told


def main(arguments: list[str] | None = None) -> int:
    """Entry point. Returns an exit code of ipc/process/exits.py."""
    options = _parser().parse_args(arguments)
    places = key_places(
        options.state_dir, lease=options.lease, grant=options.grant, receipt=options.receipt,
        receipt_set=options.receipt_set,
    )  # fmt: skip
    try:
        if options.command == "rotate":
            place = next(place for place in places.each() if place.purpose == options.purpose)
            told: object = rotated(place, forget=options.forget_previous)
        elif options.command == "check":
            told = problems(places, options.purpose)
        else:
            told = rows(places)
    except PrivateFileError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(msgspec.json.encode(told).decode())
    return Exit.OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m notary.signing.tend_keys", description="Rotate or list keys.")
    for name in ("state-dir", "lease", "grant", "receipt", "receipt-set"):
        parser.add_argument(f"--{name}", required=True, type=Path)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list")
    look = commands.add_parser("check")
    look.add_argument("--purpose", action="append", default=[], choices=("lease", "grant", "receipt", "checkpoint"))
    make = commands.add_parser("rotate")
    make.add_argument("--purpose", required=True, choices=("lease", "grant", "receipt", "checkpoint"))
    make.add_argument("--forget-previous", action="store_true")
    return parser


if __name__ == "__main__":
    sys.exit(main())
