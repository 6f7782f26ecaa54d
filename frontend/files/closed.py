"""Why a file or folder can't be opened although its mode and owner are right: of what lies beside ledger or keys the
walls of a front (frontend/walls.py) open that alone which was there when it started."""

import errno
import os
from pathlib import Path
from typing import Final

_REPLACED: Final = "it was made or replaced after the start, beside ledger or keys: restart the gateway"


def why_closed(path: Path | str, error: OSError) -> str:
    """The operating system's reason, with the mend where the walls are the cause: modes are asked without them."""
    if error.errno == errno.EACCES and os.access(path, os.R_OK):
        return f"{error.strerror}; {_REPLACED} (docs/isolation.md)"
    return f"{error.strerror}"
