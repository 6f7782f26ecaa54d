"""A policy that limits every principal, for fronts that tests build."""

import json

import msgspec

from frontend.policy.acl import PolicyFiles
from frontend.policy.data import PolicyData
from frontend.policy.engine import PolicySources


def limiting(**limits: int) -> PolicyFiles:
    """A policy whose data has these limits for all."""
    text = json.dumps({"policy_version": "p1", "limits": {"default": limits}})
    return PolicyFiles(PolicySources({}, text, "p1"), msgspec.json.decode(text, type=PolicyData))
