"""Mistakes in a policy that loads: those that turn a denial into something else.

Reads text, so it may err: it refuses nothing at a start or a reload, where each doubt is a line of the log. `gateway
policy check` calls mistakes problems, and warns of data that is not there, which may come later. Asks no engine.
"""

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from frontend.policy.rules import RegoRule, blanked, rules_of

PACKAGE = "gateway"
CONDITION = "applies_"
SECTIONS = frozenset({"policy_version", "acl", "allowlist", "denied_actions", "thresholds", "caps"})
"""Names that data.json may have at any time (frontend/policy/data.py), even if it lacks them now."""

_DATA = re.compile(r"(?<![\w.])data\.(?P<root>[A-Za-z_]\w*)(?:\.(?P<member>[A-Za-z_]\w*))?")
_ANY_DATA = re.compile(r"(?<![\w.])data\b(?!\.[A-Za-z_])")
"""`data` whole, or a member whose name is worked out."""
_PACKAGE_LINE = re.compile(r"^package\s+([A-Za-z_][\w.]*)", re.MULTILINE)
_REASON = re.compile(r'^reason\(\s*(?P<name>"(?:\\.|[^"\\])*"|[^\s")]+)', re.MULTILINE)
_NAMED = re.compile(r':=\s*("(?:\\.|[^"\\])*")')
_WORD = re.compile(r"[\w.]+|:=|[{}\[\]()]")
_ANY_NAME = re.compile(r"(?<![\w.])[A-Za-z_][\w.]*")


class Doubt(msgspec.Struct, frozen=True):
    """`sentence` begins with `file:line: `. A mistake is never meant; of anything else it is only likely."""

    sentence: str
    is_mistake: bool


def doubts_of(modules: Mapping[str, str], data: str) -> tuple[Doubt, ...]:
    """All of them. `modules` maps file names to Rego, `data` is the text of a valid data.json."""
    rules = rules_of(modules)
    ours = {name: rule for (package, name), rule in rules.items() if package == PACKAGE}
    mistakes = [*_reasons(ours, modules), *_unasked(ours, modules), *_falls_through(ours)]
    return (
        *(Doubt(sentence, is_mistake=True) for sentence in mistakes),
        *(Doubt(sentence, is_mistake=False) for sentence in _absent(modules, rules, json.loads(data))),
        *(Doubt(sentence, is_mistake=False) for sentence in _unread(modules, data)),
    )


def _reasons(ours: Mapping[str, RegoRule], modules: Mapping[str, str]) -> Iterator[str]:
    """A denial without a reason, and a reason without a denial, where a policy has both kinds of rules."""
    denial, reason = ours.get("denial"), ours.get("reason")
    if denial is None or reason is None or not reason.is_function:
        return
    names = [str(json.loads(text)) for text in _NAMED.findall(_outside(denial.text))]
    heads = [head["name"] for head in _REASON.finditer(reason.text)]
    given = [str(json.loads(head)) for head in heads if head.startswith('"')]
    if any(not head.startswith('"') and head != "_" for head in heads):
        return  # one that takes any name
    for name in names:
        if name not in given:
            place = _place(modules, f":= {json.dumps(name, ensure_ascii=False)}", denial)
            yield f'{place}: the denial "{name}" has no reason: add reason("{name}") := …{meant(name, given)}'
    for name in given:
        if name not in names:
            place = _place(modules, f"reason({json.dumps(name, ensure_ascii=False)}", reason)
            yield f'{place}: reason("{name}") belongs to no denial{meant(name, names)}'


def _unasked(ours: Mapping[str, RegoRule], modules: Mapping[str, str]) -> Iterator[str]:
    """A condition that no rule asks for decides nothing."""
    used = {
        name.rpartition(".")[2]
        for rule in rules_of(modules).values()
        for name in _ANY_NAME.findall(blanked(rule.text))
        if name.rpartition(".")[2] != rule.name
    }
    for name, rule in ours.items():
        if name.startswith(CONDITION) and not rule.is_function and name not in used:
            yield f"{rule.file}:{rule.line}: {name} is asked for by no rule: it denies nothing and holds nothing"


def _falls_through(ours: Mapping[str, RegoRule]) -> Iterator[str]:
    """A branch of `decision` whose document may have no value: then the branch behind it decides."""
    decision = ours.get("decision")
    if decision is None:
        return
    if "else" not in _outside(decision.text).split():
        return
    *before, _ = _values(decision.text)
    for value in before:
        for name in _ANY_NAME.findall(blanked(value)):
            rule = ours.get(name)
            is_given = name.startswith("data.") and name != "data.policy_version"
            if rule is not None or is_given:
                yield (
                    f"{decision.file}:{decision.line}: where {name} has no value, this branch of decision has none, "
                    "and the one behind it decides: settle who decides first, as contrib/policy/gateway.rego does"
                )
                return


def _absent(modules: Mapping[str, str], rules: Mapping[tuple[str, str], RegoRule], data: Any) -> Iterator[str]:
    """References to data that neither data.json nor a package has."""
    packages = {match[1] for source in modules.values() for match in _PACKAGE_LINE.finditer(blanked(source))}
    roots = {package.partition(".")[0] for package in packages}
    for file, source in modules.items():
        plain = blanked(source)
        for read in _DATA.finditer(plain):
            root, member = read["root"], read["member"]
            line = plain.count("\n", 0, read.start()) + 1
            if re.search(r"\bwith\s+$", plain[max(0, read.start() - 80) : read.start()]):
                continue
            if root in packages and root not in data:
                known = [name for package, name in rules if package == root]
                is_inside = any(package.startswith(f"{root}.{member}") for package in packages)
                if member is not None and member not in known and not is_inside:
                    yield f"{file}:{line}: data.{root}.{member}: no rule has this name{meant(member, known)}"
            elif root not in roots and root not in SECTIONS and root not in data:
                known = sorted({*roots, *SECTIONS, *data})
                yield f"{file}:{line}: data.{root}: data.json does not have it{meant(root, known)}"


def _unread(modules: Mapping[str, str], text: str) -> Iterator[str]:
    """Names in data.json that no rule reads, and that are nearly those of a section it does not have."""
    sources = [blanked(source) for source in modules.values()]
    if any(map(_ANY_DATA.search, sources)):
        return
    data = json.loads(text)
    read = {found["root"] for source in sources for found in _DATA.finditer(source)}
    for name in data.keys() - SECTIONS - read:
        if likely := meant(name, SECTIONS - data.keys()):
            line = text.count("\n", 0, text.find(json.dumps(name))) + 1
            yield f"data.json:{line}: {name}: no rule reads it{likely}"


def meant(name: str, known: Iterable[str]) -> str:
    """`; did you mean …?` with the closest known name; empty without one."""
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def _place(modules: Mapping[str, str], text: str, rule: RegoRule) -> str:
    """`file:line` where a text first stands, else of the rule."""
    for file, source in modules.items():
        position = source.find(text)
        if position >= 0:
            return f"{file}:{source.count(chr(10), 0, position) + 1}"
    return f"{rule.file}:{rule.line}"


def _outside(text: str) -> str:
    """The text outside brackets."""
    return "".join(part for part, depth in _parts(text) if depth == 0)


def _values(text: str) -> list[str]:
    """The values of a rule's branches, in order: the text between `:=` and `if`, `else` or the end."""
    values: list[str] = []
    begun: list[str] | None = None
    for part, depth in _parts(text):
        if depth == 0 and part == ":=":
            begun = []
        elif depth == 0 and part in {"if", "else"}:
            values += ["".join(begun)] if begun is not None else []
            begun = None
        elif begun is not None:
            begun.append(part)
    return values + (["".join(begun)] if begun is not None else [])


def _parts(text: str) -> Iterator[tuple[str, int]]:
    """Words, brackets and what is between them, each with how many brackets are open around it."""
    plain, depth, position = blanked(text), 0, 0
    for word in _WORD.finditer(plain):
        yield text[position : word.start()], depth
        depth -= word[0] in "}])"
        yield word[0], depth + (word[0] in "{[(}])")
        depth += word[0] in "{[("
        position = word.end()
    yield text[position:], depth
