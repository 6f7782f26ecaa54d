"""Values on a command line: a number, true or false is that; everything else is a text, and so is '"5"'.

Guarantees that a number is sent as it was written, or refused: a bound that is rounded is another bound.
"""

import json
from decimal import Decimal, InvalidOperation

from gateway_client.cli.exits import usage

Scalar = str | int | float | bool


def scalar(text: str) -> Scalar:
    """The value that `text` says. Raises a usage failure for a number with more digits than can be compared."""
    try:
        value = json.loads(text, parse_float=_exactly, parse_constant=str)
    except ValueError:
        return text
    return value if isinstance(value, str | int | float) else text


def number(text: str) -> int | float | None:
    """The number that `text` says, None for everything else. Raises as `scalar` does."""
    value = scalar(text)
    return None if isinstance(value, bool | str) else value


def shown(bound: float) -> str:
    """A bound with all of its digits: 100.0, which JSON writes as 100, too."""
    return repr(float(bound)).removesuffix(".0")


def _exactly(text: str) -> float:
    value = float(text)
    try:
        is_exact = Decimal(repr(value)) == Decimal(text)
    except InvalidOperation:  # an exponent that no decimal has
        is_exact = False
    if not is_exact:
        raise usage("a number has more digits than can be compared", "Write at most 15 digits.")
    return value
