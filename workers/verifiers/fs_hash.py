"""fs_hash: the file holds what the request asked to be written.

The host reads the file again after the provider has ended and compares it with the SHA-256 of the request's content.
`{"path_pointer": "/path", "content_pointer": "/content"}` (the defaults) say where the request names them. A file that
happened to hold that content is not enough: the host must have seen the write.
"""

import hashlib
from typing import Any

import msgspec

from workers.host.folders import NotAFile, digest, open_file, open_folder, open_root
from workers.host.paths import split_path
from workers.verifiers.evidence import Evidence, Unverified


def verify_fs_hash(evidence: Evidence) -> dict[str, Any]:
    """Evidence `{kind, path, sha256, bytes}`. Raises Unverified, HostError for a path that no file has."""
    plan = evidence.plan
    if plan.files is None:
        raise Unverified("the plan has no files")
    request = msgspec.json.decode(plan.request)
    path = _text_at(request, evidence.config.get("path_pointer", "/path"))
    content = _text_at(request, evidence.config.get("content_pointer", "/content")).encode()
    targets = (f"write {path}", f"append {path}")
    if not any(seen.kind == "fs" and seen.ok and seen.target in targets for seen in evidence.observations):
        raise Unverified("the host saw no write to the file")
    wanted = "sha256:" + hashlib.sha256(content).hexdigest()
    segments = split_path(path)
    try:
        with (
            open_root(plan.files.root) as root,
            open_folder(root, segments[:-1]) as folder,
            open_file(folder, segments[-1]) as file,
        ):
            found = digest(file, evidence.pulse)
    except (OSError, NotAFile):
        raise Unverified("the file can't be read") from None
    if found != wanted:
        raise Unverified("the file holds something else")
    return {"kind": "fs_hash", "path": path, "sha256": found, "bytes": len(content)}


def _text_at(document: object, pointer: object) -> str:
    """The string that a JSON pointer (RFC 6901) names. Raises Unverified."""
    if not isinstance(pointer, str) or not pointer.startswith("/"):
        raise Unverified("a pointer of verification_config is not a JSON pointer")
    found = document
    for token in pointer[1:].split("/"):
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isascii() and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        else:
            raise Unverified(f"the request has nothing at {pointer}")
    if not isinstance(found, str):
        raise Unverified(f"the request has no text at {pointer}")
    return found
