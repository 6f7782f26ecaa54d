"""The files that a worker may still reach beside what names and certificates need: those of actions."""

import os
from contextlib import suppress

from ipc.walls.landlock import CHANGE, Place


def files_place(files_dir: str) -> Place:
    """The folder of the actions' files, which is made where it is missing. It may be that it can't be: then a worker
    reaches no file, and its calls say so."""
    with suppress(OSError):
        os.makedirs(files_dir, mode=0o700, exist_ok=True)
    return Place(files_dir, CHANGE)
