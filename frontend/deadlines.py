"""How long each room of the front waits, in one value.

Only frontend/compose.py and tests know it: a room gets its own part alone. These are no settings: users can't change
them.
"""

from dataclasses import dataclass

from frontend.calls.deadlines import CallDeadlines
from frontend.configuration.deadlines import ConfigurationDeadlines
from frontend.control import ControlDeadlines
from frontend.egress.deadlines import EgressDeadlines
from frontend.files.deadlines import FileDeadlines
from frontend.health.deadlines import HealthDeadlines
from frontend.policy.deadlines import PolicyDeadlines
from frontend.pool.deadlines import PoolDeadlines
from frontend.webhooks.deadlines import WebhookDeadlines
from frontend.witnesses.deadlines import WitnessDeadlines


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The deadlines and pauses of one front, by room."""

    calls: CallDeadlines = CallDeadlines()
    configuration: ConfigurationDeadlines = ConfigurationDeadlines()
    control: ControlDeadlines = ControlDeadlines()
    """Of the channel that compose is given, and does not open."""
    egress: EgressDeadlines = EgressDeadlines()
    files: FileDeadlines = FileDeadlines()
    health: HealthDeadlines = HealthDeadlines()
    policy: PolicyDeadlines = PolicyDeadlines()
    pool: PoolDeadlines = PoolDeadlines()
    webhooks: WebhookDeadlines = WebhookDeadlines()
    witnesses: WitnessDeadlines = WitnessDeadlines()
