"""`gateway backup`: what the gateway keeps, copied while it runs.

The supervisor reads neither ledger nor key: a process of its own does (`notary.programs.backup`), with a read
transaction, so that the gateway goes on meanwhile.
"""

import os
import shutil
from pathlib import Path

import msgspec

from ipc.process.exits import Exit
from ipc.process.private_files import partial_of
from ipc.settings import Settings
from supervisor.commands.rotation import with_key_paths
from supervisor.dev.keys import run_key_program
from supervisor.refusal import Refused

SECONDS = 3600.0
"""A ledger of a hundred gigabytes, on a slow disk."""
_KNOWN = frozenset({Exit.CONFIG, Exit.NO_PERMISSION, Exit.UNAVAILABLE})


def back_up(settings: Settings, target: Path, *, with_keys: bool) -> str:
    """Do it; what to tell. Raises Refused."""
    arguments = [str(target.absolute()), *(["--with-keys"] if with_keys else [])]
    given = msgspec.json.encode(with_key_paths(settings)).decode()
    what = "the backup could not be made"
    try:
        done = run_key_program("notary.programs.backup", arguments, what, given, seconds=SECONDS)
    except BaseException:  # also Ctrl-C: the process was killed, and could not take its copy away
        shutil.rmtree(partial_of(target.absolute(), os.getpid()), ignore_errors=True)
        raise
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Refused(Exit(done.returncode) if done.returncode in _KNOWN else Exit.FAILED, why)
    return done.stdout
