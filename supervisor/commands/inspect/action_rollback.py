"""`gateway actions rollback`: an earlier manifest and its module back in force.

The result is checked in a copy of the folder before a file is replaced; files are replaced whole, and put back if the
running gateway refuses them. A kill between files and reload leaves an earlier manifest that the next reload or start
reads. With a running gateway the event is written with the reload; without one a program of the notary writes it,
while this process holds the state directory.
"""

import difflib
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import msgspec

from ipc.messages.manifests import ActionRollback
from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError, hold_folder
from ipc.settings import Settings
from ipc.texts.visible import visible
from supervisor.commands.inspect.file_changes import FileChanges
from supervisor.commands.inspect.rollback import local_user
from supervisor.commands.rotation import with_key_paths
from supervisor.dev.keys import run_key_program
from supervisor.life.archive import (
    ArchiveDamaged,
    ManifestArchive,
    ManifestVersion,
    digest_of,
    module_file,
    read_bounded,
)
from supervisor.life.asking import ask_gateway
from supervisor.refusal import Refused
from supervisor.state_dir import hold_state_dir

LEAST_DIGITS = 8
MOST_DIFF_LINES = 60
_MOST_MANIFEST_BYTES = 256 * 1024
_MOVED = "If another file has the action now, run gateway reload, and roll back then."


def roll_back(settings: Settings, action_id: str, to: str | None, environ: Mapping[str, str]) -> str:
    """Do it; the text that tells the change. Raises Refused."""
    archive = ManifestArchive(Path(settings.state_dir))
    with ExitStack() as cleanup:
        is_running = _is_running(Path(settings.state_dir))
        try:
            if not is_running:
                hold_state_dir(Path(settings.state_dir), cleanup, is_mended=False)
            cleanup.enter_context(hold_folder(Path(settings.manifests_dir)))
            versions = archive.history().get(action_id, [])
        except ArchiveDamaged as error:
            raise Refused(Exit.FAILED, str(error)) from None
        except PrivateFileError as error:
            raise Refused(error.exit_code, str(error)) from None
        target = chosen(versions, to, action_id)
        now = versions[-1]
        changes, before, after = _changes(settings, archive, now, target)
        try:
            trusts = changes.check(settings, environ)
        except Refused as refused:
            if now.digest is None or changes.place.exists():
                raise
            more = f"{changes.place}, which was in force, is not there any more. {_MOVED}"
            raise Refused(refused.code, f"{refused.sentence}\n{more}") from None
        done = ActionRollback(action_id, target.version, str(target.digest), now.digest, local_user())
        if is_running:
            told = _reload(settings, changes, done)
        else:
            changes.apply()
            try:
                _note(settings, done)
            except Refused:
                changes.undo()
                raise
            told = "No gateway runs: the next start puts it in force."
    lines = [f"{visible(action_id)}: version {_name(now)} -> {_name(target)}, {changes.shown}"]
    lines += [f"{target.module} is trusted again (trusted_modules.yaml)"] if trusts else []
    return "\n".join([*lines, *_diff(before, after), told])


def chosen(versions: list[ManifestVersion], to: str | None, action_id: str) -> ManifestVersion:
    """The newest version that `to` names, or the newest that differs from the one in force. Raises Refused."""
    shown = visible(action_id)
    if not versions:
        raise Refused(Exit.FAILED, f"no manifest of {shown} is recorded; gateway actions history lists those that are.")
    earlier = [one for one in reversed(versions) if one.digest not in (None, versions[-1].digest)]
    if to is None:
        if not earlier:
            raise Refused(Exit.FAILED, f"no earlier manifest of {shown} is recorded.")
        return earlier[0]
    digits = to.removeprefix("sha256:")
    found = [one for one in earlier if one.version == to]
    if not found and len(digits) >= LEAST_DIGITS:
        found = [one for one in earlier if str(one.digest).removeprefix("sha256:").startswith(digits)]
    if not found:
        raise Refused(Exit.FAILED, f"no earlier manifest of {shown} has the version or digest {visible(to)}.")
    if len({one.digest for one in found}) > 1:
        raise Refused(Exit.USAGE, f"{visible(to)} names more than one manifest of {shown}: give a digest.")
    return found[0]


def _is_running(state_dir: Path) -> bool:
    try:
        ask_gateway(state_dir, "status")
    except Refused as refused:
        if refused.code != Exit.UNAVAILABLE:
            raise
        return False  # none runs, or it is silent: then the lock of its state directory refuses
    return True


def _changes(
    settings: Settings, archive: ManifestArchive, now: ManifestVersion, target: ManifestVersion
) -> tuple[FileChanges, bytes, bytes]:  # fmt: skip
    """The files to write, and both manifests. Raises Refused."""
    folder = Path(settings.manifests_dir)
    modules = Path(settings.modules_dir or folder / "modules")
    place = folder / (now.file or target.file)
    if place.is_symlink():
        raise Refused(Exit.FAILED, f"{place} is a link: bring the earlier file back where the link leads to.")
    try:
        before = read_bounded(place, _MOST_MANIFEST_BYTES)
    except FileNotFoundError:
        before = archive.copy_of(now.digest) or b"" if now.digest is not None else b""
    except ValueError as error:
        raise Refused(Exit.FAILED, f"{error}.") from None
    if before and now.digest is None:
        raise Refused(Exit.FAILED, f"{place} has something else now, which would be lost. Rename that file first.")
    if before and digest_of(before) != now.digest:
        mend = "Run gateway reload, or move it out of the folder."
        raise Refused(Exit.FAILED, f"{place} has changed since it was last loaded, and would be lost. {mend}")
    after = archive.copy_of(str(target.digest))
    if after is None:
        raise Refused(Exit.FAILED, f"the copy of this manifest in {archive.folder} is gone or damaged.")
    files = {place: after}
    if target.module is not None and not module_file(modules, target.module).exists():
        module = archive.copy_of(target.module)
        if module is None:
            raise Refused(Exit.FAILED, f"its module {target.module} is neither in {modules} nor among the copies.")
        files = {module_file(modules, target.module): module} | files
    return FileChanges(folder, modules, place, target.module, files), before, after


def _reload(settings: Settings, changes: FileChanges, done: ActionRollback) -> str:
    """Replace the files and have the gateway put them in force; the earlier files are put back if it refuses."""
    changes.apply()
    try:
        answer = ask_gateway(Path(settings.state_dir), "reload", rolled_back=msgspec.to_builtins(done))
    except Refused as refused:
        more = f"{changes.place} is replaced: run gateway reload once it answers."
        raise Refused(refused.code, f"{refused.sentence} {more}") from None
    if answer["error"] is not None:
        changes.undo()
        raise Refused(Exit.FAILED, f"the gateway refused it, and nothing was changed: {answer['error']}.")
    return f"Reloaded: {answer['actions']} actions, policy {answer['policy_version']}."


def _note(settings: Settings, done: ActionRollback) -> None:
    """Write the event. Raises Refused."""
    named = {"action": done.action_id, "version": done.version, "digest": done.digest, "by": done.by}
    named |= {"replaced": done.replaced} if done.replaced is not None else {}
    arguments = [f"--{name}={text}" for name, text in named.items()]
    given = msgspec.json.encode(with_key_paths(settings)).decode()
    ended = run_key_program("notary.programs.note_rollback", arguments, "the event could not be written", given)
    if ended.returncode != 0:
        why = (ended.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Refused(Exit.FAILED, f"the event could not be written, and nothing was changed: {why}")


def _name(one: ManifestVersion) -> str:
    return "none" if one.digest is None else f"{one.version} ({one.digest.removeprefix('sha256:')[:12]})"


def _diff(before: bytes, after: bytes) -> list[str]:
    old, new = (text.decode("utf-8", "replace").splitlines() for text in (before, after))
    lines = [visible(line.rstrip()) for line in difflib.unified_diff(old, new, "in force", "rolled back", lineterm="")]
    rest = len(lines) - MOST_DIFF_LINES
    return lines[:MOST_DIFF_LINES] + ([f"({rest} more lines)"] if rest > 0 else [])
