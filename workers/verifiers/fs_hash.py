"""fs_hash: the file holds what the request asked to be written.

The host reads the file again after the provider has ended and compares it with the SHA-256 of the request's content
(ipc/expected.py). A file that happened to hold that content is not enough: the host must have seen the write. If the
observations of a call are lost, `look_at` still finds the file, and claims no more than that.
"""

from typing import Any

from ipc.expected import FileToLeave, NotExpected, expected_file
from ipc.messages.attesting import ABSENT, DIFFERS, MATCHES, UNREADABLE
from workers.host.folders import NotAFile, Pulse, digest, open_file, open_folder, open_root
from workers.host.meter import HostError
from workers.host.paths import split_path
from workers.verifiers.evidence import Evidence, Unverified

_REASONS = {
    ABSENT: "the file can't be read",
    UNREADABLE: "the file can't be read",
    DIFFERS: "the file holds something else",
}


def verify_fs_hash(evidence: Evidence) -> dict[str, Any]:
    """Evidence `{kind, path, sha256, bytes}`. Raises Unverified, HostError for a path that no file has."""
    try:
        file = expected_file(evidence.plan, evidence.config)
    except NotExpected as error:
        raise Unverified(str(error)) from None
    targets = (f"write {file.path}", f"append {file.path}")
    if not any(seen.kind == "fs" and seen.ok and seen.target in targets for seen in evidence.observations):
        raise Unverified("the host saw no write to the file")
    state, digest_now = _compared(evidence.files_dir, file, split_path(file.path), evidence.pulse)
    if state != MATCHES:
        raise Unverified(_REASONS[state])
    return {"kind": "fs_hash", "path": file.path, "sha256": digest_now, "bytes": file.bytes}


def look_at(files_dir: str, file: FileToLeave, pulse: Pulse) -> tuple[str, str | None]:
    """The file as it is now: one of LOOKS, and `sha256:<hex>` of a file that was read. Changes nothing, raises nothing.

    `pulse` raises OSError once the time for it is over.
    """
    try:
        segments = split_path(file.path)
    except HostError:  # no file has this path
        return ABSENT, None
    return _compared(files_dir, file, segments, pulse)


def _compared(files_dir: str, file: FileToLeave, segments: list[str], pulse: Pulse) -> tuple[str, str | None]:
    try:
        with (
            open_root(files_dir, file.root) as root,
            open_folder(root, segments[:-1]) as folder,
            open_file(folder, segments[-1]) as descriptor,
        ):
            digest_now = digest(descriptor, pulse)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT, None
    except (OSError, NotAFile):
        return UNREADABLE, None
    return (MATCHES if digest_now == file.sha256 else DIFFERS), digest_now
