"""The webhooks as a front knows them: the names of the endpoints, and test deliveries for operators.

The deliverer delivers (frontend/webhooks/deliverer.py); a front knows only an endpoint's name, and asks for a test
delivery through the supervisor.
"""

from collections.abc import Callable, Iterable

import msgspec

from frontend.control import SupervisorLink, SupervisorSilent
from frontend.deadlines import WebhookDeadlines
from frontend.webhooks.outcome import FAILED, NOT_CONFIGURED, AttemptOutcome
from ipc.messages.control import TryWebhook
from ipc.settings import Settings, WebhookSettings
from ipc.texts.identifiers import new


class ConfiguredWebhooks(msgspec.Struct, frozen=True):
    """Those that are configured now, as `settings` says at each look."""

    settings: Callable[[], Settings]
    control: SupervisorLink
    deadlines: WebhookDeadlines = WebhookDeadlines()
    gone: set[str] = msgspec.field(default_factory=set)
    """Names of those that have answered 410 since the last reload: nothing is sent to them."""

    def note_gone(self, names: Iterable[str]) -> None:
        """These are gone, and no others."""
        self.gone.clear()
        self.gone.update(names)

    @property
    def rows(self) -> tuple[WebhookSettings, ...]:
        """Every endpoint, those that are disabled among them."""
        return self.settings().webhooks

    @property
    def active(self) -> tuple[str, ...]:
        """Names of those that are not disabled."""
        return tuple(row.name for row in self.rows if not row.disable)

    async def test(self, name: str) -> tuple[AttemptOutcome, str]:
        """One attempt to send a `webhook.test` to an active endpoint now, and the id of what was sent."""
        event_id, request_id = new("evt_"), new("try_")
        seconds = next((row.timeout_seconds for row in self.rows if row.name == name), None)
        if seconds is None:  # a reload took it away after the caller had looked
            return AttemptOutcome(FAILED, None, NOT_CONFIGURED), event_id
        try:
            told = await self.control.try_webhook(
                TryWebhook(request_id, name, event_id), seconds + self.deadlines.test_margin_seconds
            )
        except SupervisorSilent as error:
            return AttemptOutcome(FAILED, None, str(error)), event_id
        return AttemptOutcome(told.outcome, told.status, told.error), event_id
