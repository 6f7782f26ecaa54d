"""A question out of a file: the input document of docs/policy.md, checked field by field, each problem with its line.

Guarantees that an accepted question is one that a gateway could ask. Never fills in a missing field: the answer to a
different question explains nothing.
"""

import codecs
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from frontend.files.problems import FileProblem, Report, did_you_mean, shown
from ipc.question import FIELDS, TEXT, TEXT_OR_NULL, TEXTS, VALUES
from ipc.texts.pointers import MAX_SCALARS

MAX_BYTES = 1_048_576

WORDS: dict[str, tuple[str, ...]] = {
    "action_risk_level": ("low", "medium", "high", "critical"),
    "action_trust_verdict": ("digest_ok", "mismatch", "not_registered"),
    "egress_profile": ("none", "direct_allowlist", "proxy_allowlist"),
}
_MAX_CALLS = _MAX_INTEGER = 2**53 - 1
_NUMBERS = "numbers of a double, whole ones between -(2^53 - 1) and 2^53 - 1"
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\]:,]')


class QuestionRefused(Exception):
    """The file holds no question. `problems` are sorted."""

    def __init__(self, problems: list[FileProblem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = sorted(problems)


def read_question(path: Path) -> dict[str, Any]:
    """The input document in a file. Raises QuestionRefused."""
    report = Report(str(path))
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1).removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        report.add(0, "", f"cannot be read: {error.strerror}.", "Name a file that holds the input document.")
        raise QuestionRefused(report.problems) from None
    return parse_question(data, report)


def parse_question(data: bytes, report: Report) -> dict[str, Any]:
    """As read_question, from bytes."""
    document = _parsed(data, report)
    if isinstance(document, dict) and not report.problems:
        _check(document, _key_lines(data.decode()), report)
    if report.problems:
        raise QuestionRefused(report.problems)
    assert isinstance(document, dict)
    return document


def _parsed(data: bytes, report: Report) -> object:
    if len(data) > MAX_BYTES:
        report.add(0, "", f"the file is larger than {MAX_BYTES} bytes.", "Shorten it.")
        return None
    twice: list[str] = []

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for name, value in pairs:
            if name in members and name not in twice:
                twice.append(name)
            members[name] = value
        return members

    try:
        document = json.loads(data.decode(), object_pairs_hook=once, parse_constant=_refuse_constant)
        json.dumps(document, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        report.add(error.lineno, "", f"this is not JSON: {error.msg}.", "Correct it.")
    except UnicodeDecodeError as error:
        report.add(data.count(b"\n", 0, error.start) + 1, "", "this is not UTF-8 text.", "Save it as UTF-8.")
    except (ValueError, RecursionError) as error:
        report.add(0, "", f"this is not JSON that policy could be asked with: {shown(str(error))}.", "Correct it.")
    else:
        for name in twice:
            report.add(_line_of_second(data.decode(), name), name, f"{shown(name)} stands here twice.", "Keep one.")
        if not isinstance(document, dict):
            report.add(1, "", "this is no JSON object.", "Write the input document of docs/policy.md.")
        return document
    return None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _check(document: Mapping[str, Any], lines: Mapping[str, int], report: Report) -> None:
    for name, says in FIELDS.items():
        if name not in document:
            report.add(0, name, f"{name} is missing.", f"Add it: {says}.")
        elif not _fits(document[name], says):
            report.wrong(lines.get(name, 0), name, document[name], f"must be {says}", "Write it so.")
        elif says == VALUES and not all(map(_is_in_calls, document[name].values())):
            report.wrong(lines.get(name, 0), name, document[name], f"must hold {_NUMBERS}", "No call has another.")
        elif name in WORDS and document[name] not in WORDS[name]:
            rule = f"must be one of {', '.join(WORDS[name])}"
            report.wrong(lines.get(name, 0), name, document[name], rule, did_you_mean(document[name], WORDS[name]))
    for name in document:
        if name not in FIELDS:
            report.add(lines.get(name, 0), name, f"unknown field {shown(name)}.", did_you_mean(name, FIELDS))
    budget = document.get("budgets_before")
    if isinstance(budget, dict):
        _check_budget(budget, lines.get("budgets_before", 0), report)


def _check_budget(budget: Mapping[str, Any], line: int, report: Report) -> None:
    name = "budgets_before.calls_remaining"
    if set(budget) != {"calls_remaining"}:
        report.wrong(line, "budgets_before", dict(budget), "must hold calls_remaining and nothing else", "Write it so.")
        return
    left = budget["calls_remaining"]
    if left is not None and (type(left) is not int or not 0 <= left <= _MAX_CALLS):
        report.wrong(line, name, left, "must be a whole number from 0, or null", "Write null for a lease without.")


def _fits(value: object, says: str) -> bool:
    if says == TEXTS:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if says == TEXT_OR_NULL:
        return value is None or isinstance(value, str)
    if says == VALUES:
        return isinstance(value, dict) and all(name.startswith("/") and _is_value(one) for name, one in value.items())
    return isinstance(value, str if says == TEXT else dict)


def _is_value(value: object) -> bool:
    items = value if isinstance(value, list) else [value]
    return len(items) <= MAX_SCALARS and not any(isinstance(item, dict | list) for item in items)


def _is_in_calls(value: object) -> bool:
    """False for numbers that the body of a call can't have (RFC 7493)."""
    numbers = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, int | float)]
    return all(abs(one) <= _MAX_INTEGER if isinstance(one, int) else math.isfinite(one) for one in numbers)


def _keys(text: str) -> list[tuple[int, str, int]]:
    """(depth, name, line) of every name in valid JSON, in order."""
    keys: list[tuple[int, str, int]] = []
    depth, last, line, position = 0, "", 1, 0
    for token in _TOKEN.finditer(text):
        line += text.count("\n", position, token.start())
        position = token.start()
        mark = token[0]
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
        elif mark == ":":
            keys.append((depth, json.loads(last), line))
        else:
            last = mark
    return keys


def _key_lines(text: str) -> dict[str, int]:
    return {name: line for depth, name, line in _keys(text) if depth == 1}


def _line_of_second(text: str, name: str) -> int:
    return next(iter([line for _, key, line in _keys(text) if key == name][1:]), 0)
