"""The settings that follow a reload: what they are, what of two configurations differs, and what a process has then.

Everything else is read once, when the gateway starts. Names are those of the configuration file, without any value:
they are for logs, evidence and answers.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from ipc.backends.webhooks import nameable
from ipc.configuration.networks import NetworkSettings
from ipc.settings import OperatorSettings, PrincipalMapping, Settings, WebhookSettings, WorkerSettings

OPERATORS: Final = "operators"
PRINCIPALS: Final = "identity.peercred.principals"
WEBHOOKS: Final = "webhooks"
NETWORKS: Final = "egress.networks"
RELOADABLE: Final = frozenset({OPERATORS, PRINCIPALS, WEBHOOKS, NETWORKS})
"""Names of what a reload puts in force."""

_SPELT: Final = {
    "identity.allow_unmapped": "identity.peercred.allow_unmapped",
    "identity.principals": PRINCIPALS,
}
"""Where the file has a table that the struct does without."""
_POOLS = WorkerSettings.__struct_fields__
_NOT_OF_THE_FILE: Final = {"dev_mode", "weakened", "walls", "version"} | {f"workers.{pool}.workers" for pool in _POOLS}
"""Members that the supervisor finds, and tables of them."""


class Reloadable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings that a reload may replace: operators, principals, webhooks, private networks, and which of
    them weaken the gateway."""

    operators: tuple[OperatorSettings, ...]
    principals: dict[str, PrincipalMapping]
    weakened: tuple[str, ...]
    webhooks: tuple[WebhookSettings, ...] = ()
    networks: tuple[NetworkSettings, ...] = ()

    @property
    def without_addresses(self) -> "Reloadable":
        """As processes have it that deliver nothing."""
        return msgspec.structs.replace(self, webhooks=nameable(self.webhooks))


def reloadable_of(settings: Settings) -> Reloadable:
    """The part of these settings that a reload may replace."""
    return Reloadable(
        settings.operators, settings.identity.principals, settings.weakened, settings.webhooks, settings.egress.networks
    )  # fmt: skip


def with_reloadable(settings: Settings, fresh: Reloadable) -> Settings:
    """These settings after a reload."""
    identity = msgspec.structs.replace(settings.identity, principals=fresh.principals)
    egress = msgspec.structs.replace(settings.egress, networks=fresh.networks)
    return msgspec.structs.replace(
        settings, operators=fresh.operators, identity=identity, weakened=fresh.weakened, webhooks=fresh.webhooks,
        egress=egress,
    )  # fmt: skip


def named_values(settings: Settings) -> Iterator[tuple[str, object]]:
    """(name, value) of every setting of the file; arrays of tables and tables with free keys are one each."""
    for name, value in _values(settings, ""):
        if not {name, name.partition(".")[0]} & _NOT_OF_THE_FILE:
            yield _SPELT.get(name, name), value


def differing(one: Settings, other: Settings) -> tuple[str, ...]:
    """Names of the settings that differ, sorted."""
    others = dict(named_values(other))
    return tuple(sorted(name for name, value in named_values(one) if others[name] != value))


def _values(table: msgspec.Struct, path: str) -> Iterator[tuple[str, object]]:
    for field in table.__struct_fields__:
        value, name = getattr(table, field), f"{path}{field}"
        if isinstance(value, msgspec.Struct):
            yield from _values(value, f"{name}.")
        else:
            yield name, value
