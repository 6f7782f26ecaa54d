"""The gateway's workers, out of its metrics: how many are idle and busy, and how many calls wait for one."""

import re
from dataclasses import dataclass, field

MOST_POOLS = 16
_SAMPLE = re.compile(
    r"^gate_(workers|worker_waiting_calls)\{([^}]{0,200})\} ([0-9]{1,9}(?:\.[0-9]{1,9})?)$", re.MULTILINE
)
_LABEL = re.compile(r'(profile|state)="([^"\\]{1,64})"')


@dataclass(slots=True)
class Pool:
    """The workers of one profile."""

    profile: str
    by_state: dict[str, int] = field(default_factory=dict)
    waiting: int = 0


def pools_of(metrics: str) -> tuple[Pool, ...]:
    """Every profile in these metrics, by name. Other metrics are ignored."""
    by_profile: dict[str, Pool] = {}
    for sample in _SAMPLE.finditer(metrics):
        family, labels, value = sample.group(1), dict(_LABEL.findall(sample.group(2))), int(float(sample.group(3)))
        profile = labels.get("profile")
        if profile is None or (profile not in by_profile and len(by_profile) >= MOST_POOLS):
            continue
        pool = by_profile.setdefault(profile, Pool(profile))
        if family == "worker_waiting_calls":
            pool.waiting = value
        elif len(pool.by_state) < MOST_POOLS:
            pool.by_state[labels.get("state", "?")] = value
    return tuple(by_profile[name] for name in sorted(by_profile))
