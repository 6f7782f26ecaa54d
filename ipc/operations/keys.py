"""Operations on the gateway's own signing keys. Their answers are sentences, one a problem."""

from ipc.operations.operation import FrontOperation


class CheckKeys(FrontOperation[list[str]], frozen=True):
    """Read the key files as they lie, and change nothing."""


class FollowKeys(FrontOperation[list[str]], frozen=True):
    """Put the key files as they lie in force, with an event for each change."""
