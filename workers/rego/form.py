"""The form of Rego files where the evaluator takes what Rego v1 does not: brackets that close nothing, rules without
`if`, and a rule where an `else` was meant.

rego-cpp 1.5.2 drops a closing bracket that does not match, and reads `name {` as a rule and a lone name as one that
always holds. The policy would differ from the author's intent, so such a file is refused with its lines. Reads text
alone, and leaves to the evaluator's parser all that the parser refuses.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from workers.rego.withs import blanked

_CLOSES = {")": "(", "]": "[", "}": "{"}
_TOKEN = re.compile(r"[\w.]+|\"[^\"\n]*\"|`[^`]*`|:=|[=!<>]=|[^\s\w]")
_STATEMENTS = frozenset({"package", "import"})
_DEFINES = frozenset({":=", "=", "contains"})
_OPERATORS = frozenset({":=", "=", "==", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "%", "|", "&", ",", "in"})
_EXPECTS_A_TERM = _OPERATORS | {"contains"}
_NEVER_LAST = _EXPECTS_A_TERM | {"if", "else", "default", "not", "with", "as", "some", "every"}
_NEVER_FIRST = frozenset({"if", "else", "contains", "in", "with", "as"})


class _Token(NamedTuple):
    """A word or sign outside brackets, or all that stands between two brackets: then `mark` is the opening one."""

    mark: str
    start: int
    end: int


def form_problems(modules: Mapping[str, str]) -> list[str]:
    """Sentences with file and line; empty when each file has the form of Rego v1 as far as that is judged here."""
    problems: list[str] = []
    for name, source in modules.items():
        plain = blanked(source)
        problems_here = _stray_bracket(plain) or _wrong_rules(plain)
        problems += [f"{name}:{plain.count(chr(10), 0, position) + 1}: {said}" for position, said in problems_here]
    return problems


def _stray_bracket(plain: str) -> list[tuple[int, str]]:
    """The first bracket that closes nothing: what follows it can't be judged. Those left open the parser refuses."""
    waiting: list[re.Match[str]] = []
    for token in _TOKEN.finditer(plain):
        mark = token[0]
        if mark in _CLOSES.values():
            waiting.append(token)
        elif mark in _CLOSES:
            if not waiting:
                return [(token.start(), f"this {mark} closes nothing")]
            opened = waiting.pop()
            if opened[0] != _CLOSES[mark]:
                line = plain.count("\n", 0, opened.start()) + 1
                return [(token.start(), f"this {mark} does not close the {opened[0]} of line {line}")]
    return []


def _outside(plain: str) -> Iterator[_Token]:
    """The tokens outside brackets, in order."""
    depth, opened = 0, None
    for token in _TOKEN.finditer(plain):
        mark = token[0]
        if mark in _CLOSES.values():
            opened = opened or token
            depth += 1
        elif mark in _CLOSES:
            depth -= 1
            if depth == 0 and opened is not None:
                yield _Token(opened[0], opened.start(), token.end())
                opened = None
        elif depth == 0:
            yield _Token(mark, token.start(), token.end())


def _statements(plain: str) -> Iterator[list[_Token]]:
    """Rules with their `else`, packages and imports, one by one."""
    rule: list[_Token] = []
    for token in _outside(plain):
        if rule and _begins(token, rule, plain):
            yield rule
            rule = []
        rule.append(token)
    if rule:
        yield rule


def _begins(token: _Token, rule: list[_Token], plain: str) -> bool:
    """Whether `token` is the first one of the next rule."""
    last = rule[-1]
    if not re.match(r"\w", token.mark) or token.mark in _NEVER_FIRST:
        return False
    if last.mark == "{" and len(rule) > 1 and rule[-2].mark == "if":
        return True
    return "\n" in plain[last.end : token.start] and last.mark not in _NEVER_LAST


def _wrong_rules(plain: str) -> list[tuple[int, str]]:
    wrong: list[tuple[int, str]] = []
    end = -1
    for rule in _statements(plain):
        if end >= 0 and "\n" not in plain[end : rule[0].start]:
            said = f"a rule must begin on a line of its own: `{rule[0].mark}` stands where `else` may stand"
            wrong.append((rule[0].start, said))
        wrong += _wrong_head(rule)
        end = rule[-1].end
    return wrong


def _wrong_head(rule: list[_Token]) -> Iterator[tuple[int, str]]:
    """A body without `if`, or a name alone."""
    if rule[0].mark in _STATEMENTS:
        return
    before, is_head = "", True
    for token in rule:
        if token.mark == "{" and is_head and before not in _EXPECTS_A_TERM:
            yield token.start, "the body of this rule has no `if` before it"
            return
        is_head = token.mark != "if" and (is_head or token.mark == "else")
        before = token.mark
    if is_head and not any(token.mark in _DEFINES or token.mark == "if" for token in rule):
        yield rule[0].start, "this rule has neither a value nor `if`: it would always hold"
