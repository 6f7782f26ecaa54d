"""The manifests that fronts put in force: told to the supervisor, which keeps a copy of each for `gateway actions`."""

import msgspec

from ipc.messages.message import Message


class LoadedManifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One action as it is in force. `file` is a name in the manifests folder; digests are `sha256:<hex>`."""

    action_id: str
    version: str
    file: str
    digest: str
    module: str | None = None
    """The digest of its module, where that is a file of the modules folder."""


class ManifestsLoaded(Message, frozen=True):
    """These manifests, and no others, are in force. Front to supervisor."""

    manifests: tuple[LoadedManifest, ...]


class ActionRollback(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An operator's rollback of one action, which a reload puts in force."""

    action_id: str
    version: str
    digest: str
    """The digest of the manifest that comes into force."""
    replaced: str | None
    """The digest of the manifest that was in force; None where the action was gone."""
    by: str
    """The user of this host: `uid:1000`."""
