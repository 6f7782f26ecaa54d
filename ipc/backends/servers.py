"""The servers that can stand behind a part of the gateway, declared once: part, name, and the setting that chooses one.

Status, the schema of the configuration and `gateway check --connect` derive from these records. The notary registers
the functions of its servers in notary/servers/.
"""

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from ipc.backends.postgres_address import parse_postgres_url
from ipc.backends.redis_address import parse_redis_url
from ipc.settings import Settings


class ServerAddress(Protocol):
    """The address of a server: `host` is None for a Unix socket, which has no ports."""

    @property
    def host(self) -> str | None:
        """A name or an IP address."""

    @property
    def ports(self) -> tuple[int, ...]:
        """The TCP ports that are connected to."""


class UrlForm(msgspec.Struct, frozen=True):
    """The form of a server's URL: the pattern for editors, and the parser, which raises ValueError with a sentence."""

    pattern: str
    parse: Callable[[str], ServerAddress]


class Backend(msgspec.Struct, frozen=True, kw_only=True):
    """A server. It is used if its setting is given; otherwise the part is embedded."""

    part: str
    name: str
    setting: str
    """The dotted name of the setting with its URL."""
    form: UrlForm | None = None
    """None: the setting has a kind of its own (supervisor/settings/sections/addresses.py)."""

    def url(self, settings: Settings) -> str | None:
        """Its URL in these settings; None if it is not used."""
        value: object = settings
        for name in self.setting.split("."):
            value = getattr(value, name)
        return value if isinstance(value, str) else None


REDIS: Final = Backend(
    part="store", name="redis", setting="store.redis_url",
    form=UrlForm(r"^((redis|rediss)(\+sentinel)?|unix)://", parse_redis_url),
)  # fmt: skip
POSTGRESQL: Final = Backend(
    part="ledger", name="postgresql", setting="ledger.url", form=UrlForm("^postgres(ql)?://", parse_postgres_url)
)
OPA: Final = Backend(part="policy", name="opa", setting="opa_url")
BACKENDS: Final = (REDIS, POSTGRESQL, OPA)
EMBEDDED: Final = {"store": "sqlite", "policy": "embedded", "ledger": "sqlite"}
"""Part -> the name of the backend that needs no server."""


def names_of(part: str) -> list[str]:
    """Every backend that the part can have, for schemas."""
    return sorted({EMBEDDED[part], *(one.name for one in BACKENDS if one.part == part)})


def used(settings: Settings) -> dict[str, str]:
    """Part -> the name of the backend that these settings choose."""
    return EMBEDDED | {one.part: one.name for one in BACKENDS if one.url(settings) is not None}
