"""Every kind of effect that a provider can have, and the imports without an effect. Declared once.

Derived: the values of a manifest's `required_imports` (frontend/manifests), the worker profiles and their pools
(supervisor/, frontend/pool), the interfaces that a component may import (workers/interfaces.py). The rights that a
worker needs for an effect, beyond those of computing alone, are in workers/sandbox/effects.py.
"""

from typing import Final

EFFECTS: Final = ("http", "fs")
"""Each is a WIT interface, an entry of `required_imports`, a worker profile with a pool, and a kind of observation. An
action has one of them at most."""
WITHOUT_EFFECT: Final = ("log", "clock")
"""Interfaces that every worker offers."""
IMPORTS: Final = (*EFFECTS, *WITHOUT_EFFECT)
COMPUTE: Final = "compute"
"""The profile of an action without an effect."""
PROFILES: Final = (COMPUTE, *EFFECTS)


def profile_of(required_imports: tuple[str, ...]) -> str:
    """The worker profile that the imports select."""
    return next((name for name in EFFECTS if name in required_imports), COMPUTE)
