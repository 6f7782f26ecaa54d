"""Files of TLS with private networks: which ones the template has, and whether it must read them again.

A worker gets certificate and key when it is forked, so that files which were replaced count for later workers.
"""

from collections.abc import Iterable
from pathlib import Path

from ipc.configuration.networks import NetworkSettings, NetworkTls
from ipc.process.private_files import look_at


class NetworkFiles:
    """The files that the template was last told of, as they were then."""

    def __init__(self, networks: Iterable[NetworkSettings]) -> None:
        self.current: tuple[NetworkTls, ...] = ()
        self._seen: dict[str, tuple[int, ...] | None] = {}
        self.update(networks)

    def update(self, networks: Iterable[NetworkSettings]) -> bool:
        """Take the files of these networks. True if they are others, or others lie at their paths."""
        current = tuple(dict.fromkeys(one.tls for one in networks if one.tls is not None))
        seen = {path: look_at(Path(path)) for files in current for path in _paths(files)}
        is_changed = (current, seen) != (self.current, self._seen)
        self.current, self._seen = current, seen
        return is_changed


def _paths(files: NetworkTls) -> Iterable[str]:
    pair = files.client_certificate
    named = (files.ca_file, *(() if pair is None else (pair.certificate_file, pair.key_file)))
    return (path for path in named if path is not None)
