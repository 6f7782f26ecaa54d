"""Domain rules in a plan: the front decides and the worker enforces by this one reading of them."""

from collections.abc import Iterable


def matches(host: str, rules: Iterable[str]) -> bool:
    """True when a rule is this name, or `*.` before a name that it lies below, at any depth. All in normal form."""
    return any(rule == host or (rule.startswith("*.") and host.endswith(rule[1:])) for rule in rules)


def overlap(rule: str, other: str) -> bool:
    """True if there is a name that both rules match."""
    if rule == other:
        return True
    is_wide, is_other_wide = rule.startswith("*."), other.startswith("*.")
    if is_wide and is_other_wide:
        return rule.endswith(other[1:]) or other.endswith(rule[1:])
    return matches(rule, (other,)) or matches(other, (rule,))
