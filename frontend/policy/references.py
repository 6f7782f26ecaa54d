"""The value of a reference in a rule, such as `data.acl[input.principal].actions`, over an input and the data.

For showing only. A reference with a variable in it has no value here, since only the evaluator knows what that is.
"""

import enum
import json
import re
from typing import Any

_PART = re.compile(r"\.(?P<name>\w+)|\[(?P<index>(?:[^\[\]]|\[[^\[\]]*\])*)\]")
_TEXT = re.compile(r'"(?:\\.|[^"\\])*"')
_ROOT = re.compile(r"(?:input|data)\b")


class Missing(enum.Enum):
    """There is no value: the evaluator finds it undefined."""

    MISSING = "missing"


MISSING = Missing.MISSING


class NoValue(Exception):
    """A part of the reference is a variable."""


def resolve(reference: str, document: Any, data: Any) -> tuple[str, Any]:
    """(the reference with its indices written out, its value or MISSING). Raises NoValue."""
    root = _ROOT.match(reference)
    if root is None:
        raise NoValue(reference)
    shown, value = root[0], document if root[0] == "input" else data
    position = root.end()
    while position < len(reference):
        part = _PART.match(reference, position)
        if part is None:
            raise NoValue(reference)
        position = part.end()
        key = part["name"] if part["name"] else _key(part["index"].strip(), document, data)
        shown += f".{key}" if part["name"] else f"[{json.dumps(key, ensure_ascii=False)}]"
        value = value.get(key, MISSING) if isinstance(value, dict) else MISSING
    return shown, value


def _key(index: str, document: Any, data: Any) -> str:
    if _TEXT.fullmatch(index):
        try:
            return str(json.loads(index))
        except ValueError:
            raise NoValue(index) from None
    _, value = resolve(index, document, data)
    if not isinstance(value, str):
        raise NoValue(index)
    return value
