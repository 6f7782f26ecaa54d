"""Values of a held call that evidence keeps, read again from its stored plan."""

import msgspec
from msgspec import UNSET

from ipc.evidence.kept_values import KeptValues, values_of
from ipc.plan import Plan


def kept_of_plan(plan: Plan) -> KeptValues | None:
    """The values that the plan keeps of its request; None where it keeps none."""
    return None if plan.kept is UNSET else values_of(plan.kept, msgspec.json.decode(plan.request))
