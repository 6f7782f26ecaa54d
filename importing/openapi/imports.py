"""One import: which operations are taken, under which ids, which files are there already, and the comparison."""

import msgspec

from importing.folder import ImportFolder, ManifestFile
from importing.openapi.digests import Digests
from importing.openapi.document import ApiDocument, ApiOperation
from importing.openapi.making import ImportTarget, MadeManifest, made
from importing.refusal import ImportRefused, LeftOut
from importing.words import numbered, one_line, snake
from ipc.process.exits import Exit

_ANY_SERVER = "https://server.invalid"
"""For a comparison: a server that the document does not name whole keeps no operation out of it."""


class Imported(msgspec.Struct, frozen=True):
    """The result: manifests to write, files that are kept, and operations that are left out."""

    made: list[MadeManifest] = msgspec.field(default_factory=list)
    kept: list[ManifestFile] = msgspec.field(default_factory=list)
    left_out: list[tuple[str, str]] = msgspec.field(default_factory=list)
    """Title of the operation and reason."""


class Differences(msgspec.Struct, frozen=True):
    """Operations by key: in the document and in no manifest, the other way round, and with another digest."""

    new: list[str] = msgspec.field(default_factory=list)
    gone: list[str] = msgspec.field(default_factory=list)
    changed: list[str] = msgspec.field(default_factory=list)


def chosen(document: ApiDocument, wanted: list[str]) -> tuple[ApiOperation, ...]:
    """The operations that `--operation` names by id or by `METHOD /path`, or all. Raises ImportRefused."""
    if not wanted:
        return document.operations
    found = [one for one in document.operations if {one.raw.get("operationId"), one.key} & set(wanted)]
    known = {name for one in found for name in (one.raw.get("operationId"), one.key)}
    missing = sorted(set(wanted) - known)
    if missing:
        raise ImportRefused(f"the document has no operation {', '.join(map(ascii, missing))}.", Exit.USAGE)
    return tuple(found)


def imported(
    operations: tuple[ApiOperation, ...],
    document: ApiDocument,
    folder: ImportFolder,
    target: ImportTarget,
    *,
    over: bool,
) -> Imported:
    """Make the manifests; write nothing. `over`: make those that are there, too."""
    ids = ids_of(document, target.prefix, folder)
    digests = Digests(document)
    there = _manifests_of(document, folder)
    result = Imported()
    for operation in operations:
        document.steps.at = operation.key
        action_id = ids[operation.key]
        found = there.get(one_line(operation.key, 300))
        if found is not None and not (over and folder.is_named_by_id(found)):
            result.kept.append(found)
            continue
        try:
            if found is None:
                _refuse_taken(folder, action_id, over=over)
            else:
                action_id = found.action_id  # a reviewer may have renamed it
            result.made.append(made(operation, action_id, digests.of(operation), target))
        except LeftOut as reason:
            result.left_out.append((operation.title, str(reason)))
    return result


def compared(
    operations: tuple[ApiOperation, ...], document: ApiDocument, folder: ImportFolder, target: ImportTarget
) -> Differences:
    """The operations beside the manifests of this API. An operation of which no manifest can be made is not new."""
    there = _manifests_of(document, folder)
    digests = Digests(document)
    differences = Differences()
    for operation in operations:
        document.steps.at = operation.key
        key = one_line(operation.key, 300)
        digest = digests.of(operation)
        if key not in there:
            if _can_be_made(operation, digest, target):
                differences.new.append(key)
        elif (known := there[key].imported) is not None and known.digest != digest:
            differences.changed.append(f"{key} ({there[key].path.name})")
    keys = {one_line(one.key, 300) for one in document.operations}
    differences.gone.extend(f"{key} ({there[key].path.name})" for key in sorted(there.keys() - keys))
    return differences


def ids_of(document: ApiDocument, prefix: str, folder: ImportFolder) -> dict[str, str]:
    """An id for each operation of the document, by key: the same whichever of them are imported."""
    ids: dict[str, str] = {}
    taken: set[str] = set()
    before = f"{snake(prefix)}_" if snake(prefix) else ""
    for number, operation in enumerate(document.operations, 1):
        name = before + (operation.name or f"operation_{number}")
        ids[operation.key] = numbered(name, lambda one: one in taken or folder.is_reserved(one))
        taken.add(ids[operation.key])
    return ids


def _manifests_of(document: ApiDocument, folder: ImportFolder) -> dict[str, ManifestFile]:
    """The manifests that were made from this API, by operation."""
    return {
        one.imported.operation: one
        for one in folder.manifests
        if one.imported is not None and one.imported.source == "openapi" and one.imported.api == document.title
    }


def _refuse_taken(folder: ImportFolder, action_id: str, *, over: bool) -> None:
    """Raises LeftOut if another action has the id or its file; `over`: the file may be replaced, with its action."""
    for one in folder.manifests:
        is_file = one.path.name == f"{action_id}.yaml"
        if (is_file and not over) or (not is_file and one.action_id == action_id):
            raise LeftOut(f"the id {action_id} is taken by {one.path.name}: import with --prefix")


def _can_be_made(operation: ApiOperation, digest: str, target: ImportTarget) -> bool:
    for server in dict.fromkeys((target.server, _ANY_SERVER)):
        try:
            made(operation, "new", digest, ImportTarget(target.source, server, target.prefix))
        except LeftOut:
            continue
        return True
    return False
