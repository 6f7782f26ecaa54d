"""Domain rules in a plan: the front decides and the worker enforces by this one reading of them."""

from collections.abc import Iterable


def matches(host: str, rules: Iterable[str]) -> bool:
    """True when a rule is this name, or `*.` before a name that it lies below, at any depth. All in normal form."""
    return any(rule == host or (rule.startswith("*.") and host.endswith(rule[1:])) for rule in rules)
