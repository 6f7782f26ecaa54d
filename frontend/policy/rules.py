"""The rules of Rego files as their author wrote them: names, places, and which parts of input and data they read.

Reads text alone, with an eye for brackets, strings and comments; the evaluator's own opinion of a file is not asked. So
it serves to name and to show, never to decide.
"""

import re
from collections.abc import Iterator, Mapping

import msgspec

_TOKEN = re.compile(r'#[^\n]*|`[^`]*`|"(?:\\.|[^"\\\n])*"')
_PACKAGE = re.compile(r"^package\s+([A-Za-z_][\w.]*)", re.MULTILINE)
_HEAD = re.compile(
    r"^(?:default\s+)?(?P<name>[A-Za-z_]\w*)(?=(?P<call>\()|\s*(?::=|=|\[|\{|\bif\b|\bcontains\b|$))", re.MULTILINE
)
_NO_RULES = frozenset({"package", "import", "default", "else", "some", "every", "not", "with", "as", "if", "in"})
_READ = re.compile(r"\b(?:input|data)(?:\.\w+|\[[^\[\]\n]*(?:\[[^\[\]\n]*\][^\[\]\n]*)*\])+")
_NAME = re.compile(r"\b[A-Za-z_]\w*\b")


class RegoRule(msgspec.Struct, frozen=True):
    """One rule: all definitions of one name in one package. `file` and `line` are those of the first."""

    package: str
    name: str
    file: str
    line: int
    text: str
    is_function: bool

    @property
    def entry(self) -> str:
        """How the evaluator is asked for it: `gateway/denial`."""
        return f"{self.package.replace('.', '/')}/{self.name}"


def rules_of(modules: Mapping[str, str]) -> dict[tuple[str, str], RegoRule]:
    """(package, name) -> rule, in the order in which they first stand in the files."""
    rules: dict[tuple[str, str], RegoRule] = {}
    for file, source in modules.items():
        plain = blanked(source)
        package = _PACKAGE.search(plain)
        if package is None:
            continue
        heads = list(_heads(plain))
        for number, head in enumerate(heads):
            end = heads[number + 1].start() if number + 1 < len(heads) else len(source)
            key = (package[1], head["name"])
            before = rules.get(key)
            text = _without_comments(source[head.start() : end]).rstrip()
            line = source.count("\n", 0, head.start()) + 1
            rules[key] = (
                RegoRule(*key, file, line, text, head["call"] is not None)
                if before is None
                else msgspec.structs.replace(before, text=f"{before.text}\n{text}")
            )
    return rules


def reads_of(rule: RegoRule, rules: Mapping[tuple[str, str], RegoRule]) -> list[str]:
    """The references to input and data in a rule and in the rules of its package that it uses, each once."""
    reads: dict[str, None] = {}
    seen: set[str] = set()
    waiting = [rule]
    while waiting:
        current = waiting.pop(0)
        if current.name in seen:
            continue
        seen.add(current.name)
        reads.update(dict.fromkeys(_READ.findall(current.text)))
        names = _NAME.findall(blanked(current.text))
        waiting += [rules[key] for name in names if (key := (rule.package, name)) in rules and name not in seen]
    return list(reads)


def blanked(source: str) -> str:
    """Comments, and the inside of strings, replaced by blanks."""
    return _TOKEN.sub(lambda token: re.sub(r"[^\n]", " ", token[0]), source)


def _without_comments(source: str) -> str:
    return _TOKEN.sub(lambda token: "" if token[0].startswith("#") else token[0], source)


def _heads(plain: str) -> Iterator[re.Match[str]]:
    """Where rules begin: at the start of a line that no bracket is open before."""
    depth = position = 0
    for head in _HEAD.finditer(plain):
        between = plain[position : head.start()]
        depth += sum(map(between.count, "{[(")) - sum(map(between.count, "}])"))
        position = head.start()
        if depth == 0 and head["name"] not in _NO_RULES:
            yield head
