"""The walls of a front: the folders that its configuration names, no program, no capability, no way to listen.

A front reads what operators change while it runs (manifests, policy, secrets) and sends notifications, so it keeps
those folders and may connect. It stays in the user namespace of the host: it must know which users its peers are.
"""

import resource

from ipc.settings import Settings
from ipc.walls.calls import forbidden
from ipc.walls.confining import Confinement, Walls
from ipc.walls.landlock import CHANGE, READ, READ_FILES, WRITE_FILES, Place, Scope
from ipc.walls.places import folders, homes, kept, outside_places, program_places
from ipc.walls.seccomp import compile_rules

_SYSTEM = ("/etc", "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", "/proc")
"""How names are resolved changes while it runs; what processes use is read for metrics."""


class WallRefused(Exception):
    """The operating system refused a wall. The process must leave with Exit.SANDBOX."""


def walls(settings: Settings) -> Walls:
    """What the kernel is to build around a front."""
    secrets = (settings.secrets.file, settings.secrets.age_identity_file, settings.receipt_keys_jwks_path)
    hooks = (one.secret_file for one in settings.webhooks)
    places = (
        *program_places(), *outside_places(), *(Place(path, READ) for path in _SYSTEM),
        Place("/dev/null", READ_FILES | WRITE_FILES),
        *kept([settings.state_dir]), *folders([settings.policy_dir], CHANGE),
        *folders([settings.manifests_dir, settings.modules_dir]), *homes(secrets), *homes(hooks),
        *homes([settings.egress.proxy_allowlist_file], CHANGE),
    )  # fmt: skip
    return Walls(
        filter=compile_rules(forbidden(), is_list_of_refused=True),
        places=places,
        scope=Scope(may_connect=True),
        limits={resource.RLIMIT_CORE: 0},
        has_environment=True,
    )


def enter(settings: Settings) -> None:
    """Build them, for good; the process must have one thread. Raises WallRefused."""
    try:
        confinement = Confinement(walls(settings), settings.walls)
        confinement.confine()
        confinement.seal()
    except (OSError, ValueError) as error:
        raise WallRefused(str(error)) from error
