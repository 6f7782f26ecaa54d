"""A cap as it stands for one call, for people."""

from collections.abc import Mapping
from typing import Any

from gateway_client.cli.display.safe import safe


def cap_line(cap: Mapping[str, Any]) -> str:
    """The sum with this call and without it, and the limits."""
    limits = [
        f"{words} {safe(cap[name])}"
        for name, words in (("hold_above", "held above"), ("deny_above", "denied above"))
        if cap.get(name) is not None
    ]
    within = f"{safe(cap.get('pointer'))} per {safe(cap.get('per'))} within {safe(cap.get('window_seconds'))} s"
    sums = f"{safe(cap.get('with_this'))} with this call, {safe(cap.get('total'))} without it"
    return f"{within}: {sums}; {', '.join(limits) or 'no limit holds or denies it'}"
