"""Paths that a guest may name: the rules of a plan's paths (ipc/texts/paths.py) in a guest's words.

A guest can't name the temporary files of writes under way. Never touches the file system.
"""

from ipc.texts.paths import InvalidPath, check_path
from workers.host.meter import HostError

TEMPORARY_PREFIX = ".gateway-"
"""Begins the names of files that are being written; a guest neither names nor sees them."""

_WORDS = {
    "empty": "the path is empty",
    "control_character": "the path holds a character that paths can't hold here",
    "invisible_character": "the path holds a character that paths can't hold here",
    "wildcard_character": "the path holds a character that paths can't hold here",
    "backslash": "the path holds a character that paths can't hold here",
    "too_long": "the path or a segment of it is too long",
    "absolute": "the path is absolute; paths are relative to the action's root",
    "not_nfc": "the path is not in Unicode normal form C",
    "empty_segment": "the path holds an empty, `.` or `..` segment",
    "space_at_end": "a segment of the path begins or ends with a space",
    "dot_segment": "the path holds an empty, `.` or `..` segment",
}


def split_path(path: str) -> list[str]:
    """The segments of a guest's path. Raises HostError invalid-input for what is not one plain spelling."""
    try:
        check_path(path)
    except InvalidPath as error:
        raise HostError("invalid-input", _WORDS[error.rule]) from None
    segments = path.split("/")
    if any(segment.startswith(TEMPORARY_PREFIX) for segment in segments):
        raise HostError("denied", "the path names a file that is being written")
    return segments
