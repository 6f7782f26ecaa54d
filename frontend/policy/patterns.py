"""Regular expressions of a policy that an agent's text could make run for ever.

The evaluator backtracks, and its input comes from requests: 30 characters against `^(a+)+$` use up the second of a
policy process, and fail all its questions. So a literal pattern in a rule is judged like patterns of manifests
(frontend/schemas/ambiguity.py). A pattern that is built at run time, or that is not ECMA-262, is not judged; only the
deadline of the evaluation stops it.
"""

import json
import re
from collections.abc import Mapping

from frontend.files.problems import shown
from frontend.schemas.ambiguity import refuse_exponential
from frontend.schemas.pattern import PatternRefused
from frontend.schemas.regexes import parse_pattern

_COMMENT_OR_TEXT = re.compile(r'#[^\n]*|`[^`]*`|"(?:\\.|[^"\\\n])*"')
_CALL = re.compile(r'\bregex\.\w+\(\s*(?P<pattern>`[^`]*`|"(?:\\.|[^"\\\n])*")')


def pattern_problems(modules: Mapping[str, str]) -> list[str]:
    """Sentences that begin with `file:line: `."""
    problems: list[str] = []
    for name, source in modules.items():
        plain = _COMMENT_OR_TEXT.sub(lambda token: " " * len(token[0]) if token[0][0] == "#" else token[0], source)
        for call in _CALL.finditer(plain):
            pattern = _text_of(call["pattern"])
            said = _refusal(pattern)
            if said is not None:
                line = plain.count("\n", 0, call.start()) + 1
                problems.append(f"{name}:{line}: the pattern {shown(pattern)} {said}, and the text may be an agent's")
    return problems


def _text_of(literal: str) -> str:
    if literal.startswith("`"):
        return literal[1:-1]
    try:
        return str(json.loads(literal))
    except ValueError:
        return ""


def _refusal(pattern: str) -> str | None:
    try:
        part = parse_pattern(pattern)
    except PatternRefused:
        return None
    try:
        refuse_exponential(part)
    except PatternRefused as refused:
        return str(refused)
    return None
