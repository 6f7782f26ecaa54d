"""The modules that the first gateway of a test run has compiled, for later gateways: it saves each a third of a second.

A gateway takes it as it takes what it compiled before a restart: by digest, from two folders of the same user.
"""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from threading import Lock

FOLDERS = ("modules-cache", "modules-cache.digests")
_UNFINISHED = shutil.ignore_patterns(".tmp-*")
_ONE_AT_A_TIME = Lock()


def give_modules(state: Path) -> None:
    """Before a start: a state folder that is not there yet is made, with what was compiled, if anything was."""
    with _ONE_AT_A_TIME:
        if not state.exists() and _is_kept():
            state.mkdir(parents=True, mode=0o700)
            _copy(_kept(), state)


def keep_modules(state: Path) -> None:
    """After a start: what it compiled is kept, unless something is."""
    with _ONE_AT_A_TIME:
        if not _is_kept() and all((state / name).is_dir() for name in FOLDERS):
            _copy(state, _kept())


@cache
def _kept() -> Path:
    folder = tempfile.mkdtemp(prefix="gateway-tests-modules-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _is_kept() -> bool:
    return all((_kept() / name).is_dir() for name in FOLDERS)


def _copy(source: Path, target: Path) -> None:
    for name in FOLDERS:
        shutil.copytree(source / name, target / name, ignore=_UNFINISHED)
