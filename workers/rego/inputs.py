"""Rules that read a field which no question has: refused, with the line and the field that was probably meant.

The field is undefined for every call, and a condition over it never holds: a denial that never denies. The
fields are fixed (ipc/question.py), so that any other name is a mistake. Reads the text, tests and `with`
included; and the compiled program, for what the text hides behind another name (`x := input`). A name that a rule
computes (`input[name]`) can't be judged.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping

from ipc.question import FIELDS, MEMBERS, VALUES
from workers.rego.nodes import children, leaf_text, type_name
from workers.rego.program import place_of, sections
from workers.rego.withs import blanked

_WHOLE = "input"
_INPUT = re.compile(r"(?<![\w.])input\b")
_STEP = re.compile(r"[ \t]*\.[ \t]*(?P<name>[A-Za-z_]\w*)|\[[ \t]*(?P<text>\"(?:\\.|[^\"\\\n])*\"|`[^`]*`)[ \t]*\]")
_GET = re.compile(r"\bobject\.get\(\s*$")
_GOT = re.compile(r"\s*,\s*(?P<text>\"(?:\\.|[^\"\\\n])*\"|`[^`]*`)\s*,")


def input_problems(modules: Mapping[str, str]) -> list[str]:
    """Sentences with file and line; empty when every field that is named is one."""
    return [
        f"{file}:{source.count(chr(10), 0, position) + 1}: {said}"
        for file, source in modules.items()
        for position, said in _wrong(source)
    ]


def _wrong(source: str) -> Iterator[tuple[int, str]]:
    """(position, sentence)."""
    plain = blanked(source)
    for start in _INPUT.finditer(plain):
        names = list(_names(source, plain, start.start(), start.end()))
        if not names:
            continue
        said = _unknown(_WHOLE, names[0])
        if said is None and len(names) > 1:
            said = _unknown(names[0], names[1])
        if said is not None:
            yield start.start(), said


def _names(source: str, plain: str, start: int, end: int) -> Iterator[str]:
    """The names that follow `input` one after the other, as far as they are spelt out."""
    if _GET.search(plain, max(0, start - 40), start) and (got := _GOT.match(source, end)):
        yield _text_of(got["text"])
        return
    while step := _STEP.match(source, end):
        yield step["name"] or _text_of(step["text"])
        end = step.end()


def _text_of(literal: str) -> str:
    if literal.startswith("`"):
        return literal[1:-1]
    try:
        return str(json.loads(literal))
    except ValueError:
        return literal


def _unknown(field: str, name: str) -> str | None:
    """The problem of an unknown member of a field, or of _WHOLE; None for a known one."""
    members = FIELDS if field == _WHOLE else MEMBERS.get(FIELDS[field], ())
    has_pointers = field != _WHOLE and FIELDS[field] == VALUES
    if name in members or (has_pointers and name.startswith("/")):
        return None
    before = _WHOLE if field == _WHOLE else f"{_WHOLE}.{field}"
    read = f"{before}.{name}" if name.isidentifier() else f"{before}[{json.dumps(name)}]"
    if has_pointers:
        return f"{read}: the members of {before} are JSON pointers as manifests write them, such as /amount_cents"
    if not members:
        return f"{read}: {before} is {FIELDS[field]}, which has no members"
    (nearest,) = difflib.get_close_matches(name, members, n=1, cutoff=0.0)
    return f"{read}: no question has this field; the nearest is {before}.{nearest}"


def program_input_problems(bundle: int, modules: Mapping[str, str]) -> list[str]:
    """The same of a compiled bundle, with the line where the statement stands."""
    problems: dict[str, None] = {}
    strings: list[str] = []
    for section in sections(bundle):
        kind = type_name(section)
        if kind == "rego-static":
            tables = [table for table in children(section) if type_name(table) == "rego-stringseq"]
            strings += [leaf_text(text) for table in tables for text in children(table)]
        elif kind == "rego-functionseq":
            for function in children(section):
                name = leaf_text(next(children(function)))
                for statement, said in _Flow(strings).walk(function):
                    problems[f"{place_of(statement, statement, name, modules)}: {said}"] = None
    return list(problems)


class _Flow:
    """Which variables of one function hold the input or a field of it, in the order in which they are set."""

    def __init__(self, strings: list[str]) -> None:
        self._strings = strings
        self._holds: dict[str, str] = {"0": _WHOLE}
        """Variable -> _WHOLE or the name of a field."""

    def walk(self, node: int) -> Iterator[tuple[str, str]]:
        """(source of the statement, sentence)."""
        for child in children(node):
            kind = type_name(child)
            if kind == "rego-dotstmt":
                yield from self._dot(child)
            elif kind in {"rego-assignvarstmt", "rego-assignvaroncestmt"}:
                source, target = children(child)
                held = self._held(source)
                if held is not None:
                    self._holds[leaf_text(target)] = held
            else:
                yield from self.walk(child)

    def _dot(self, statement: int) -> Iterator[tuple[str, str]]:
        source, key, target = children(statement)
        (name,) = children(key)
        held = self._held(source)
        if held is None or type_name(name) != "rego-stringindex":
            return
        text = self._strings[int(leaf_text(name))].strip('"')
        said = _unknown(held, text)
        if said is not None:
            yield leaf_text(statement), said
        elif held == _WHOLE:
            self._holds[leaf_text(target)] = text

    def _held(self, operand: int) -> str | None:
        """The name that a variable holds; None for other operands, or another value."""
        (part,) = children(operand)
        return self._holds.get(leaf_text(part)) if type_name(part) == "rego-localindex" else None
