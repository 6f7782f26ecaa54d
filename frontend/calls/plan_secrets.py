"""The values that a worker gets for the secrets of a plan: from the secrets file, and tokens from the broker.

Guarantees that the secret of an OAuth2 client reaches no worker: a token stands in its place, or the call does not run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from frontend.broker.client import BrokerClient, BrokerSilent
from frontend.errors import GateError, errors_as
from frontend.secrets.files import SecretFile, SecretsUnavailable
from ipc.messages.brokering import digest_of
from ipc.plan import Plan
from ipc.secret_ways import AsToken

MAX_REFUSED: Final = 256
"""Ways whose refused token is remembered."""


@dataclass(frozen=True, slots=True)
class PlanSecrets:
    """Reads and fetches values."""

    file: SecretFile
    broker: BrokerClient
    refused: dict[AsToken, str] = field(default_factory=dict)
    """By way: the digest of a token with which an upstream has answered 401 last, until the next question."""

    async def values_of(self, plan: Plan) -> dict[str, str]:
        """Return the values by name; waits only for tokens. Raises SecretMissing, or GateError while a source of
        values is unavailable."""
        if not plan.secrets:
            return {}
        with errors_as("secrets_unavailable", SecretsUnavailable):
            values = self.file.for_plan(plan.secrets)
        for use in plan.secrets:
            if isinstance(use.way, AsToken) and use.name in values:
                values[use.name] = await self._token(plan, use.name, use.way, values[use.name])
        return values

    def note_refused(self, plan: Plan, values: Mapping[str, str]) -> None:
        """An upstream has answered 401 to these values: the next call asks for another token."""
        for use in plan.secrets:
            if isinstance(use.way, AsToken) and use.name in values and len(self.refused) < MAX_REFUSED:
                self.refused[use.way] = digest_of(values[use.name])

    async def _token(self, plan: Plan, name: str, way: AsToken, client_secret: str) -> str:
        try:
            return await self.broker.token(
                way, client_secret, principal=plan.principal, seconds=plan.limits.timeout_seconds,
                refused=self.refused.pop(way, None),
            )  # fmt: skip
        except BrokerSilent as error:
            raise GateError("action_execution_failed", cause=f"no token for the secret {name}: {error}") from None
