"""Provider modules to check, compile and map: the front asks, the supervisor relays, the template answers."""

import msgspec

from ipc.messages.message import Message


class ModuleFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A module that a manifest names. `reference` is `builtin:NAME` or `sha256:<hex>`; `path` only for the latter.

    `is_held`: a stored plan or an earlier load needs it. It is found by its digest among the built-in ones, too, and a
    file that is gone is replaced by the code that was compiled of it.
    """

    reference: str
    path: str | None
    required_imports: tuple[str, ...]
    is_held: bool = False


class ModuleVerdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The result for one ModuleFile. `verdict`: ok, mismatch, missing or refused; `detail` says why, for people."""

    reference: str
    verdict: str
    digest: str | None
    detail: str = ""
    is_builtin: bool = False
    """Set for a held module that the gateway ships."""


class LoadModules(Message, frozen=True):
    """Check, compile and map these modules. Front to supervisor, supervisor to template."""

    request_id: str
    modules: tuple[ModuleFile, ...]


class ModulesLoaded(Message, frozen=True):
    """One verdict per module, in order. Workers of `generation` and later have those that are ok."""

    request_id: str
    generation: int
    verdicts: tuple[ModuleVerdict, ...]
