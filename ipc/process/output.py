"""Standard output and standard error of a command, whose reader may be gone and whose disk may be full.

Guarantees an exit code that says so, and no stack trace.
"""

import os
import sys

from ipc.process.exits import Exit


def flushed(code: int, last: str = "") -> int:
    """The exit code once standard output has taken everything, and `last` at its end. A reader that went away has read
    what it wanted."""
    try:
        print(last, end="", flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python complains again at its end
        if not isinstance(error, BrokenPipeError):
            tell(f"standard output can't be written: {error.strerror}.")
            return code or Exit.FAILED
    return code


def tell(sentence: str) -> None:
    """One sentence on standard error, which may be full or gone."""
    try:
        print(f"gateway: {sentence}", file=sys.stderr, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
