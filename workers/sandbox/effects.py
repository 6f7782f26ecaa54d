"""The walls of each kind of effect, a record each: the rights beyond those of a worker that only computes."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from ipc.effects import COMPUTE
from ipc.limits import MAX_ACTION_FILE_BYTES
from ipc.walls.landlock import PathRule
from ipc.walls.places import outside_places
from ipc.walls.seccomp import Rules
from workers.sandbox.filters import fs_rules, http_rules, no_rules
from workers.sandbox.places import files_place

SERVERS_FILE = "/etc/resolv.conf"
"""The C library opens it again when it has changed."""


class EffectRights(msgspec.Struct, frozen=True, kw_only=True):
    """The rights of workers of one profile. A function of a path is given the folder of the actions' files."""

    open_files: int
    system_calls: Callable[[], Rules] = no_rules
    may_connect: bool = False
    largest_file: int = 0
    """In bytes; 0: it writes no file."""
    places: Callable[[str], tuple[PathRule, ...]] = lambda _: ()
    opens: Callable[[str], str | None] = lambda _: None
    """The path that a worker opens by name, and that may be replaced later."""


RIGHTS: Final[Mapping[str, EffectRights]] = {
    COMPUTE: EffectRights(open_files=8),
    "http": EffectRights(
        open_files=128,
        system_calls=http_rules,
        may_connect=True,
        places=lambda _: outside_places(),
        opens=lambda _: SERVERS_FILE,
    ),
    "fs": EffectRights(
        open_files=32,
        system_calls=fs_rules,
        largest_file=MAX_ACTION_FILE_BYTES,
        places=lambda files_dir: (files_place(files_dir),),
        opens=lambda files_dir: files_dir,
    ),
}
"""By the worker profile (ipc/effects.py)."""
