"""Turns what rego-cpp says about a broken policy into sentences with file and line.

Owns the knowledge of its error formats: trees of nodes, and the text form of such a tree. Pure but for reading nodes.
"""

import re
from collections.abc import Iterator, Mapping

from workers.rego.nodes import children, leaf_text, type_name

_LOCATED = re.compile(r"\(error (?:\d+:)?(?P<file>[^|()\n]*)\|(?P<offset>\d+)\|\d+\s*\(errormsg \d+:(?P<text>[^\n]*)\)")
_MESSAGE = re.compile(r"\(errormsg \d+:(?P<text>[^\n]*)\)")
_TOKEN = re.compile(r'#[^\n]*|`[^`]*`|"(?:\\.|[^"\\\n])*"')
_ODD_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|/)")
_MAX_DEPTH = 12
_MAX_TEXTS = 8


def line_of(source: str, offset: int) -> int:
    """Line number, from 1, of a byte offset."""
    return source.encode()[:offset].count(b"\n") + 1


def explained(error: str, name: str, modules: Mapping[str, str]) -> list[str]:
    """Sentences for the text of a RegoError that `add_module` raised for the file `name`."""
    sentences: list[str] = []
    for match in _LOCATED.finditer(error):
        file = match["file"] or name
        source = modules.get(file, "")
        sentences.append(f"{file}:{line_of(source, int(match['offset']))}: {match['text']}")
    return sentences[:_MAX_TEXTS] or [f"{name}: {' '.join(error.split())[:300]}"]


def error_of_answer(text: str) -> str | None:
    """The message of an error that stands in an answer instead of a value, or None."""
    match = _MESSAGE.search(text)
    return match["text"] if match else None


def texts_below(node: int) -> list[str]:
    """Every message in a tree of errors, as `code: message` where there is a code."""
    messages: list[str] = []
    for error in _errors(node, 0):
        parts = {type_name(child): leaf_text(child) for child in children(error)}
        code, message = parts.get("rego-errorcode", ""), parts.get("errormsg", "unknown error")
        messages.append(f"{code}: {message}" if code else message)
    return messages[:_MAX_TEXTS]


def _errors(node: int, depth: int) -> Iterator[int]:
    if type_name(node) == "error":
        yield node
    elif depth < _MAX_DEPTH:
        for child in children(node):
            yield from _errors(child, depth + 1)


def spelling_problems(modules: Mapping[str, str]) -> list[str]:
    r"""Problems of texts that this engine would read differently than they are written.

    A NUL ends the text for a C interface. Strings are compared as they are spelt, so that `"\u00e9"` would never equal
    an `é` of a request: the character itself must be written.
    """
    problems: list[str] = []
    for name, source in modules.items():
        if "\0" in name + source:
            problems.append(f"{name}: holds a NUL character")
            continue
        for token in _TOKEN.finditer(source):
            odd = _ODD_ESCAPE.search(token[0]) if token[0].startswith('"') else None
            if odd:
                line = source.count("\n", 0, token.start()) + 1
                problems.append(f"{name}:{line}: write the character itself instead of {odd[0]}")
    return problems
