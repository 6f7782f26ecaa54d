"""The values that a worker gets for the secrets of a plan: from the secrets file, and tokens from the broker.

Guarantees that the secret of an OAuth2 client reaches no worker: a token stands in its place, or the call does not run.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
import trio

from frontend.broker.client import BrokerClient, BrokerSilent
from frontend.errors import CallFailed, errors_as
from frontend.secrets.files import SecretFile, SecretMissing, SecretsUnavailable
from frontend.telemetry.logs import log
from ipc.configuration.secret_ways import AsToken
from ipc.messages.brokering import digest_of
from ipc.plan import Plan

MAX_REFUSED: Final = 256
"""Ways whose refused token is remembered."""


class PlanSecrets(msgspec.Struct, frozen=True):
    """Reads and fetches values."""

    file: SecretFile
    broker: BrokerClient
    refused: dict[AsToken, str] = msgspec.field(default_factory=dict)
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

    def renewal(self, plan: Plan, values: Mapping[str, str]) -> "TokenRenewal | None":
        """The renewal of a call that begins now with these values; None for one without tokens."""
        ways = {use.name: use.way for use in plan.secrets if isinstance(use.way, AsToken) and use.name in values}
        return TokenRenewal(self, plan, values, ways) if ways else None

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
            raise CallFailed("secret_missing", f"no token for the secret {name}: {error}") from None


class TokenRenewal:
    """The tokens of one call that runs: one of them is replaced at most, after an upstream has refused it."""

    def __init__(
        self, secrets: PlanSecrets, plan: Plan, values: Mapping[str, str], ways: Mapping[str, AsToken]
    ) -> None:
        self._secrets = secrets
        self._plan = plan
        self._values = values
        self._until = trio.current_time() + plan.limits.timeout_seconds
        self.ways = ways
        """By the name of the secret."""
        self.is_answered = False
        """The broker gave a token: another one, or the same again."""

    async def values(self, name: str) -> Mapping[str, str]:
        """Return another token for one secret, or the refused one if there is no other. Raises nothing."""
        plan, refused = self._plan, self._values[name]
        try:
            client_secret = self._secrets.file.for_plan(plan.secrets)[name]
            token = await self._secrets.broker.token(
                self.ways[name], client_secret, principal=plan.principal, refused=digest_of(refused),
                seconds=max(0.0, self._until - trio.current_time()),
            )  # fmt: skip
        except (BrokerSilent, SecretMissing, SecretsUnavailable, KeyError) as error:
            cause = "the secret is gone" if isinstance(error, KeyError) else str(error)
            log.warning("no other token for a call", secret=name, cause=cause, trace_id=plan.trace_id)
            return {name: refused}
        self.is_answered = True
        return {name: token}
