"""The walls of a front: the folders that its configuration names, no program, no capability, no way to listen.

A front reads what operators change while it runs (manifests, policy, secrets), brings checkpoints to witnesses and asks
an OPA where one decides, so it keeps those folders and may connect; the socket of an OPA needs no folder. It stays in
the user namespace of the host: it must know which users its peers are.

SECURITY: ledger and keys are no place of a front. A folder that holds them, or the state directory, is never opened to
it as a whole: of what lies there beside them it has what is named, as it was when it started.
"""

import os
import resource
from collections.abc import Iterable, Iterator

from ipc.settings import Settings
from ipc.texts.beneath import holds
from ipc.walls import confining
from ipc.walls.calls import forbidden
from ipc.walls.confining import WallRefused, Walls
from ipc.walls.landlock import CHANGE, READ, READ_FILES, WRITE_FILES, PathRule, Scope
from ipc.walls.places import folders, homes, kept, outside_places, program_places
from ipc.walls.seccomp import compile_rules

_NAMES = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager")
"""Where links from /etc lead to, in which files are replaced."""
_SYSTEM = "/etc"
_SERVERS_FILE = "/etc/resolv.conf"


class FrontPlaces:
    """The places that a front of this configuration reaches."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.fixed: list[str] = []
        """Paths whose replacement it can't open: their folder holds ledger or keys."""

    def all(self) -> tuple[PathRule, ...]:
        """Every place."""
        settings = self._settings
        read = (
            settings.secrets.file, settings.secrets.age_identity_file, settings.opa_token_file,
            settings.egress.proxy_ca_file,
        )  # fmt: skip
        return (
            *program_places(), *outside_places(), *(PathRule(path, READ) for path in (*_NAMES, "/proc")),
            *self._of_system(), PathRule("/dev/null", READ_FILES | WRITE_FILES), *kept([settings.fronts_folder]),
            *self._folders([settings.policy_dir], CHANGE),
            *self._folders([settings.manifests_dir, settings.modules_dir], READ),
            *self._homes(read, READ), *self._homes((one.jwks_file for one in settings.identity.issuers), READ),
            *self._homes([settings.egress.proxy_allowlist_file], CHANGE),
        )  # fmt: skip

    def _of_system(self) -> Iterator[PathRule]:
        """All of /etc only where the file that names are looked up by may be replaced there: it is no link and no
        mount, and no key lies below."""
        is_replaced = not os.path.islink(_SERVERS_FILE) and not os.path.ismount(_SERVERS_FILE)
        if is_replaced and not holds(_SYSTEM, self._settings.guarded):
            yield PathRule(_SYSTEM, READ)

    def _folders(self, paths: Iterable[str | None], rights: int) -> Iterator[PathRule]:
        for path in paths:
            yield from self._spared(path, folders([path], rights), rights)

    def _homes(self, paths: Iterable[str | None], rights: int) -> Iterator[PathRule]:
        for path in paths:
            yield from self._spared(path, homes([path], rights), rights)

    def _spared(self, path: str | None, places: Iterable[PathRule], rights: int) -> Iterator[PathRule]:
        """These places, but for the path alone instead of a folder that holds what no front may open."""
        for place in places:
            if path is None or not holds(place.path, self._settings.guarded):
                yield place
                continue
            yield PathRule(path, rights)
            if path not in self.fixed:
                self.fixed.append(path)


def walls(places: FrontPlaces, *, or_unix: bool = False) -> Walls:
    """The walls that the kernel builds around a front; `or_unix` if OPA decides and listens on a Unix socket."""
    return Walls(
        filter=compile_rules(forbidden(connects=True, or_unix=or_unix), is_list_of_refused=True),
        places=places.all(),
        scope=Scope(may_connect=True),
        limits={resource.RLIMIT_CORE: 0},
        has_environment=True,
    )


def asks_on_unix_socket(settings: Settings) -> bool:
    """The policy engine is an OPA that listens on a Unix socket."""
    return (settings.opa_url or "").startswith("unix://")


def enter(settings: Settings) -> tuple[str, ...]:
    """Build them, for good; the process must have one thread. Raises WallRefused.

    Returns the paths of the configuration whose replacement this process can't open.
    """
    places = FrontPlaces(settings)
    try:
        built = walls(places, or_unix=asks_on_unix_socket(settings))
    except (OSError, ValueError) as error:
        raise WallRefused(str(error)) from error
    confining.enter(built, settings.walls)
    return tuple(places.fixed)
