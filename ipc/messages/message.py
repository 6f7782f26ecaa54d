"""The base of all messages."""

from typing import ClassVar

import msgspec


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Base of all messages. `FDS` descriptors travel with each one (SCM_RIGHTS) and wait in `fds` of the channel."""

    FDS: ClassVar[int] = 0
