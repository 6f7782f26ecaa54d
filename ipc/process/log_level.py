"""How much processes say: `log_level` of the configuration, which children find in their environment.

Not in a message: a template hands it on to workers by forking, and has no settings.
"""

import os
from typing import Final

VARIABLE: Final = "GATEWAY_LOG_LEVEL"
INFO: Final = "info"
DEBUG: Final = "debug"


def says_details() -> bool:
    """Whether this process says what it does for each call."""
    return os.environ.get(VARIABLE) == DEBUG
