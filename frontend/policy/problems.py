"""Problems of a policy, each with its place: file with its folder, line, rule.

The engine's process knows files by name alone and speaks in sentences (`gateway.rego:12 (data.gateway.denial): …`);
this module gives them the form of all other problems of a configuration. Never decides whether something is a problem.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from frontend.files.problems import FileProblem, printable

_PLACED = re.compile(
    r"(?P<file>[^/:]+\.(?:rego|json))(?::(?P<line>\d+))?(?: \((?P<rule>[\w.]+)\))?: (?P<said>.*)", re.DOTALL
)


def policy_problems(sentences: Iterable[str], policy_dir: str) -> list[FileProblem]:
    """The sentences of a PolicyRefused as problems, sorted, each once."""
    return sorted({_problem(sentence, policy_dir) for sentence in sentences})


def _problem(sentence: str, policy_dir: str) -> FileProblem:
    folder = str(Path(policy_dir))
    if sentence.startswith(f"{folder}: "):
        return FileProblem(folder, 0, "", _sentence(sentence[len(folder) + 2 :]), "")
    placed = _PLACED.fullmatch(sentence.removeprefix(f"{folder}/"))
    if placed is None:
        return FileProblem(folder, 0, "", _sentence(sentence), "")
    rule = placed["rule"] or ""
    said = _sentence(f"{rule}: {placed['said']}" if rule else placed["said"])
    return FileProblem(f"{folder}/{placed['file']}", int(placed["line"] or 0), rule, said, "")


def _sentence(text: str) -> str:
    shown = printable(text.strip())
    return shown if shown.endswith((".", "!", "?", "…")) else f"{shown}."
