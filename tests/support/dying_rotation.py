"""Rotates a key again and again, and dies each time one step later: `python -m tests.support.dying_rotation`.

Steps are what reaches the disk: opening, writing to, renaming, synchronising and removing a file. The folder is copied
for each attempt to `<out>/<number>`; prints how many attempts died before the first one that did not.
"""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from notary.signing.keys import KeyPlaces, key_places, rotate

STEPS = ("open", "fsync", "rename", "unlink", "fchmod")
DEATH = 9


def places_in(folder: Path) -> KeyPlaces:
    """As a gateway with this state directory has them."""
    keys = folder / "keys"
    return key_places(
        folder, lease=keys / "lease.pem", grant=keys / "grant.pem", receipt=keys / "receipt.pem",
        receipt_set=folder / "receipt-keys.jwks.json",
    )  # fmt: skip


def _mortal(step: Callable[..., Any], left: list[int]) -> Callable[..., Any]:
    def take(*arguments: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            os._exit(DEATH)
        return step(*arguments, **named)

    return take


def attempt(folder: Path, purpose: str, steps: int, *, forget: bool) -> bool:
    """Rotate in a child that lives for so many steps; whether it came to its end."""
    child = os.fork()
    if child == 0:
        place = next(place for place in places_in(folder).each() if place.purpose == purpose)
        left = [steps]
        for name in STEPS:
            setattr(os, name, _mortal(getattr(os, name), left))
        rotate(place, forget=forget)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, DEATH), status
    return status == 0


def main() -> None:
    """Arguments: the folder, where the copies go, the purpose, and `forget` or nothing."""
    base, out, purpose, *more = sys.argv[1:]
    steps = 0
    while True:
        folder = Path(out) / str(steps)
        shutil.copytree(base, folder)
        if attempt(folder, purpose, steps, forget=bool(more)):
            break
        steps += 1
    print(steps)


if __name__ == "__main__":
    main()
