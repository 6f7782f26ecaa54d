"""The surroundings that a command was started in, where it can't do with them: refused in one sentence.

`launch.py` mends what can be mended before anything is imported: signals and standard streams.
"""

import os
import resource
import sys
from collections.abc import Mapping, Sequence

from ipc.process.exits import Exit
from supervisor.refusal import Refused

_READ = ("HOME", "XDG_STATE_HOME")


def settle() -> None:
    """Raise limits to those of the host, and print characters that a terminal can't show as escapes."""
    _raise_soft_limits()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _raise_soft_limits() -> None:
    """Raise the soft limits of this process and its children to the hard ones: a soft limit is a launcher's guess."""
    for which in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU,
                  resource.RLIMIT_AS, resource.RLIMIT_DATA):  # fmt: skip
        _, hard = resource.getrlimit(which)
        resource.setrlimit(which, (hard, hard))


def check_launcher(arguments: Sequence[str], environ: Mapping[str, str]) -> None:
    """Raises Refused: paths of the gateway are texts, and relative ones need a working directory."""
    try:
        here = os.getcwd()
    except OSError:
        raise Refused(Exit.NO_PERMISSION, "the working directory is gone. Change to another one.") from None
    read = [name for name in environ if name.startswith("GATEWAY_") or name in _READ]
    for what, text in (
        ("the working directory", here), *(("the argument", one) for one in arguments),
        *((name, environ[name]) for name in read),
    ):  # fmt: skip
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Refused(Exit.USAGE, f"{what} {os.fsencode(text)!r} is not UTF-8.") from None
