"""The record of which manifests are in force: digests for evidence, and names for the supervisor, which copies them.

Fronts share the digest of the set that evidence names, so that a front which reads other files is noticed: in a reload
it is refused, and one that starts tells what it read.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frontend.actions.registry import Registry
from frontend.calls.audit_writer import AuditWriter
from frontend.control import SupervisorLink
from frontend.manifests.manifest import BUILT_IN
from frontend.shared.memory import SharedMemory
from ipc.evidence.events import ADMIN_RELOAD, GATEWAY_STARTED
from ipc.messages.manifests import LoadedManifest, ManifestsLoaded

OTHER_FILES = "a front that started read other manifests than those in force"


@dataclass(slots=True)
class ManifestRecord:
    """Compares and tells the manifests of registries."""

    memory: SharedMemory
    control: SupervisorLink
    journal: AuditWriter

    async def tell_start(self, registry: Registry, signing_keys: dict[str, str]) -> None:
        """Write the event of the gateway's start, with every manifest. Raises GateError."""
        await self.journal.own(GATEWAY_STARTED, signing_keys=signing_keys, change={"manifests": digests_of(registry)})
        self.memory.note_manifests(set_digest(registry))
        self.tell_supervisor(registry)

    async def tell_successor(self, registry: Registry) -> None:
        """Write an event if a front that starts within the gateway's life has read other files. Raises GateError."""
        if self.is_told(registry):
            return
        change = {"manifests": digests_of(registry)}
        await self.journal.own(ADMIN_RELOAD, reason=OTHER_FILES, change=change)
        self.memory.note_manifests(set_digest(registry))
        self.tell_supervisor(registry)

    def is_told(self, registry: Registry) -> bool:
        """True if evidence names exactly these manifests."""
        return self.memory.manifests_digest() == set_digest(registry)

    def note(self, registry: Registry) -> None:
        """An event that names these manifests is written."""
        self.memory.note_manifests(set_digest(registry))

    def tell_supervisor(self, registry: Registry) -> None:
        """These manifests are in force."""
        self.control.post(ManifestsLoaded(tuple(_loaded(registry))))


def digests_of(registry: Registry) -> dict[str, str]:
    """Action -> digest of its manifest's file."""
    return {action.action_id: action.manifest.file_digest for action in registry.actions}


def changes(before: Registry, after: Registry) -> dict[str, Any]:
    """Action -> digest of each manifest that differs, None where the action is gone."""
    old, new = digests_of(before), digests_of(after)
    return {name: new.get(name) for name in sorted({*old, *new}) if old.get(name) != new.get(name)}


def set_digest(registry: Registry) -> str:
    """One digest of all manifests, in hexadecimal."""
    lines = (f"{name} {digest}\n" for name, digest in sorted(digests_of(registry).items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _loaded(registry: Registry) -> list[LoadedManifest]:
    return [
        LoadedManifest(
            action.action_id, action.version, Path(action.manifest.file).name, action.manifest.file_digest,
            None if action.manifest.provider_module_digest.startswith(BUILT_IN) else action.digest,
        )
        for action in registry.actions
    ]  # fmt: skip
