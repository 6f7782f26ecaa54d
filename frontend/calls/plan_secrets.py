"""The values that a worker gets for the secrets of a plan: from the secrets file, and tokens from the broker.

Guarantees that the secret of an OAuth2 client reaches no worker: a token stands in its place, or the call does not run.
"""

from dataclasses import dataclass

from frontend.broker.client import BrokerClient, BrokerSilent
from frontend.errors import GateError, errors_as
from frontend.secrets.files import SecretFile, SecretsUnavailable
from ipc.plan import Plan
from ipc.secret_ways import AsToken


@dataclass(frozen=True, slots=True)
class PlanSecrets:
    """Reads and fetches values."""

    file: SecretFile
    broker: BrokerClient

    async def values_of(self, plan: Plan) -> dict[str, str]:
        """The values by name; without a wait for a plan without tokens. Raises SecretMissing; GateError while none can
        be had."""
        if not plan.secrets:
            return {}
        with errors_as("secrets_unavailable", SecretsUnavailable):
            values = self.file.for_plan(plan.secrets)
        for use in plan.secrets:
            if isinstance(use.way, AsToken) and use.name in values:
                values[use.name] = await self._token(plan, use.name, use.way, values[use.name])
        return values

    async def _token(self, plan: Plan, name: str, way: AsToken, client_secret: str) -> str:
        try:
            return await self.broker.token(
                way, client_secret, principal=plan.principal, seconds=plan.limits.timeout_seconds
            )
        except BrokerSilent as error:
            raise GateError("action_execution_failed", cause=f"no token for the secret {name}: {error}") from None
