"""`with` as rego-cpp reads it: what it would drop without a word, or die of, is refused with its line.

Owns the knowledge of three faults of the evaluator (rego-cpp 1.5.2): `with input as …` ends the process, an index that
is no text in quotes does not compile and says no place, and a value that is a bare reference to a rule, to data or to
input makes the whole `with` vanish: a test would pass that tests nothing. Reads text alone.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping

_TOKEN = re.compile(r'#[^\n]*|`[^`]*`|"(?:\\.|[^"\\\n])*"')
_REFERENCE = r"[A-Za-z_]\w*(?:\.\w+|\[[^\[\]\n]*\])*"
_WITH = re.compile(rf"\bwith\s+(?P<target>{_REFERENCE})\s+as\s+")
_BARE_VALUE = re.compile(rf"\(*\s*(?P<value>{_REFERENCE})\s*(?:\)+\s*)?(?=[\n;,}})\]]|with\b|\Z)")
_INDEX = re.compile(r"\[([^\]]*)\]")
_RULE_START = re.compile(r"^(?=[A-Za-z_])", re.MULTILINE)
_LITERALS = frozenset({"true", "false", "null"})


def blanked(source: str) -> str:
    """The source with the inside of comments and strings replaced by `.`, every character where it was."""

    def blank(token: re.Match[str]) -> str:
        text = token[0]
        if text.startswith("#"):
            return " " * len(text)
        return text[0] + re.sub(r"[^\n]", ".", text[1:-1]) + text[-1]

    return _TOKEN.sub(blank, source)


def with_problems(modules: Mapping[str, str]) -> list[str]:
    """Sentences with file and line; empty when every `with` does what it says."""
    problems: list[str] = []
    for name, source in modules.items():
        plain = blanked(source)
        # No rule begins before the first character, and none behind the last one.
        starts = [0, *(match.start() for match in _RULE_START.finditer(plain)), len(plain)]
        for modifier in _WITH.finditer(plain):
            number = bisect_right(starts, modifier.start())
            rule = plain[starts[number - 1] : starts[number]]
            line = plain.count("\n", 0, modifier.start()) + 1
            problems += [f"{name}:{line}: {said}" for said in _wrong(plain, modifier, rule)]
    return problems


def _wrong(plain: str, modifier: re.Match[str], rule: str) -> Iterator[str]:
    target = modifier["target"]
    if target in {"input", "data"}:
        yield f"this evaluator can't replace all of {target}: name members, as in `with {target}.name as …`"
        return
    if any(not index.startswith(('"', "`")) for index in _INDEX.findall(target)):
        yield f"an index behind `with` must be a text in quotes: {target}"
    bare = _BARE_VALUE.match(plain, modifier.end())
    if bare is None or bare["value"] in _LITERALS:
        return
    root = re.split(r"[.\[]", bare["value"])[0]
    if not _is_local(root, rule):
        yield f"this evaluator forgets a `with` whose value is {bare['value']}: bind it first, as in `value := …`"


def _is_local(name: str, rule: str) -> bool:
    """Whether the rule binds the name: by `:=`, `some` or `every`, or as a parameter."""
    word = rf"\b{re.escape(name)}\b"
    head = re.match(r"[A-Za-z_]\w*\(([^()]*)\)", rule)
    if head and re.search(word, head[1]):
        return True
    # A definition of a rule is an assignment too, but stands at the start of a line.
    return re.search(rf"(?<!^){word}\s*:=|\b(?:some|every)\b[^\n;{{]*{word}", rule, re.MULTILINE) is not None
