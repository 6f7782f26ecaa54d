"""Finds once, at the start, which walls around children this machine supports; production refuses a machine that lacks
one.

Decides which user runs the children that need no file of the gateway, if root started it, and whether the gateway may
serve without all walls. Builds none itself.
"""

import os
import pwd

import msgspec

from ipc.process.exits import Exit
from ipc.settings import Settings
from ipc.walls.found import can_become, missing_walls
from ipc.walls.given import OWN_USER, Given
from ipc.walls.privileges import User
from supervisor.logs import log
from supervisor.refusal import Refused


def with_walls(settings: Settings) -> Settings:
    """Add the walls that were found to the settings; log the missing ones. Raises Refused."""
    given = find_walls(settings)
    if given.missing:
        if not (settings.dev_mode or settings.unsafe_degraded_sandbox):
            raise Refused(Exit.CONFIG, refusal(given))
        log.warning("processes serve without walls that this machine lacks", missing=list(given.missing))
    return msgspec.structs.replace(settings, walls=given)


def refusal(given: Given) -> str:
    """Why a production gateway does not start."""
    return (
        f"this machine lacks walls that confine workers: {', '.join(given.missing)}. Run gateway doctor for the mend "
        "of each, or set unsafe_degraded_sandbox = true to serve without them."
    )


def find_walls(settings: Settings) -> Given:
    """Try what there is. Raises Refused for a user that does not exist."""
    user = _user(settings.sandbox.user)
    if user is not None and not can_become(user):
        return Given(missing=(OWN_USER, *missing_walls(None)))
    missing = missing_walls(user)
    return Given(missing) if user is None else Given(missing, user.uid, user.gid)


def _user(name: str) -> User | None:
    """The user that children become; None where we are not root."""
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise Refused(Exit.CONFIG, f"sandbox.user: there is no user {name} on this machine.") from None
    if entry.pw_uid == 0:
        raise Refused(Exit.CONFIG, f"sandbox.user: {name} is root. Name a user that owns nothing.")
    return User(entry.pw_uid, entry.pw_gid)
