"""One expression of a URL template, `{…}`: read and expanded by RFC 6570, with lists, objects and explode.

Every operator but `#` is known; prefixes (`{x:3}`) are refused. A percent-encoded character in a variable's name stands
for itself in the property's name: `{?filter%5Bstate%5D}` takes the property `filter[state]`. Encodes no value: the
caller does, who knows which characters a place allows.
"""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import msgspec

from frontend.manifests.values import NAME, refuse_value, scalar_text

Encode = Callable[[str, str], str]
"""(property, text) -> the text as it stands in the URL. Raises GateError for a text that would leave its place."""


class TemplateRefused(ValueError):
    """A template that can't be used, with its fault and the mend."""

    def __init__(self, message: str, mend: str) -> None:
        super().__init__(message)
        self.mend = mend


class ExpressionOperator(msgspec.Struct, frozen=True):
    """A row of the table in RFC 6570, Appendix A. `if_empty` follows the name of an empty value."""

    first: str = ""
    separator: str = ","
    is_named: bool = False
    if_empty: str = ""


OPERATORS = {
    "": ExpressionOperator(),
    "+": ExpressionOperator(),
    ".": ExpressionOperator(".", "."),
    "/": ExpressionOperator("/", "/"),
    ";": ExpressionOperator(";", ";", is_named=True),
    "?": ExpressionOperator("?", "&", is_named=True, if_empty="="),
    "&": ExpressionOperator("&", "&", is_named=True, if_empty="="),
}
_VARIABLE = re.compile(rf"({NAME})(\*?)")
_READ = re.compile(r"([+./;?&]?)(.*)", re.DOTALL)


class Variable(msgspec.Struct, frozen=True):
    """A variable as it is written, and the request's property that it takes."""

    written: str
    name: str
    is_exploded: bool = False


class Expression(msgspec.Struct, frozen=True):
    """An operator of OPERATORS and its variables, at least one."""

    sign: str
    variables: tuple[Variable, ...]

    def __str__(self) -> str:
        names = ",".join(one.written + "*" * one.is_exploded for one in self.variables)
        return f"{{{self.sign}{names}}}"

    def expand(self, request: dict[str, Any], encode: Encode) -> str:
        """The text of the expression; empty when the request has none of its properties. Raises GateError."""
        operator = OPERATORS[self.sign]
        pieces: list[str] = []
        for variable in self.variables:
            pieces += _pieces(variable, request.get(variable.name), operator, encode)
        return operator.first + operator.separator.join(pieces) if pieces else ""


def read_expression(text: str) -> Expression:
    """The expression between two braces. Raises TemplateRefused."""
    if text.startswith("#"):
        raise TemplateRefused(f"{{{text}}} makes a fragment, which is never sent", "Remove it.")
    match = _READ.fullmatch(text)
    sign, names = match.groups() if match else ("", "")
    return Expression(sign, tuple(_variable(name, text) for name in names.split(",")))


def _variable(written: str, expression: str) -> Variable:
    match = _VARIABLE.fullmatch(written)
    if match is None:
        mend = "Write {name}, {+name}, {/name}, {;name}, {.name}, {?name} or {&name}."
        if re.search(r":[0-9]+$", written):
            mend = "Remove the prefix: the whole value is sent."
        raise TemplateRefused(f"{{{expression}}} is no expression of RFC 6570 that is known here", mend)
    return Variable(match.group(1), unquote(match.group(1)), match.group(2) == "*")


def _pieces(variable: Variable, value: Any, operator: ExpressionOperator, encode: Encode) -> list[str]:
    """The texts that the operator's separator joins; none when the value is undefined."""
    name = variable.name
    if isinstance(value, list):
        texts = [encode(name, scalar_text(name, item)) for item in value if item is not None]
        if variable.is_exploded:
            return [_named(variable.written, text, operator) for text in texts]
        return [_named(variable.written, ",".join(texts), operator)] if texts else []
    if isinstance(value, dict):
        members = [
            (encode(name, key), encode(name, scalar_text(name, item)))
            for key, item in sorted(value.items()) if item is not None
        ]  # fmt: skip
        if variable.is_exploded:
            return [_exploded(key, text, operator) for key, text in members]
        joined = ",".join(f"{key},{text}" for key, text in members)
        return [_named(variable.written, joined, operator)] if members else []
    return [] if value is None else [_named(variable.written, encode(name, scalar_text(name, value)), operator)]


def _named(name: str, text: str, operator: ExpressionOperator) -> str:
    if not operator.is_named:
        return text
    return f"{name}={text}" if text else name + operator.if_empty


def _exploded(key: str, text: str, operator: ExpressionOperator) -> str:
    return _named(key, text, operator) if operator.is_named else f"{key}={text}"


def refuse_undefined(variable: Variable, value: Any) -> None:
    """Raises GateError schema_violation for a value that RFC 6570 takes for undefined."""
    if value is None:
        refuse_value(variable.name, "required")
    items = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list) and all(item is None for item in items):
        refuse_value(variable.name, "empty")
