"""The registration of a server of the notary: its address, its part of the walls, its check and its opener.

A registration imports its client only inside its functions: a client takes half a second to import, and most notaries
have none.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ipc.backends.servers import Backend, ServerAddress
from ipc.process.clock import TimeSource
from ipc.settings import Settings
from ipc.walls.landlock import PathRule
from notary.database import Database, OpenTransaction

if TYPE_CHECKING:
    from notary.backends.redis.stores import Stores


class OpenStores(Protocol):
    """Open the store that belongs to a ledger, in a transaction of the ledger. Raises StoreGone."""

    def __call__(
        self,
        settings: Settings,
        place: Any,
        clock: TimeSource,
        connection: OpenTransaction,
        *,
        last: int,
        is_new: bool,
        gateway_id: str,
    ) -> "Stores":
        """See `open_stores` in notary/backends/redis/opening.py."""


class NotaryServer(msgspec.Struct, frozen=True, kw_only=True):
    """The registration of one server. Its functions are called only if the settings name the server."""

    declared: Backend
    password_file: Callable[[Settings], str | None]
    places: Callable[[Settings], Iterator[PathRule]]
    """The files and sockets that the walls leave open for it."""
    look_up: Callable[[Settings], Any]
    """Look its name up, which no process behind walls can. Raises StoreGone, DatabaseGone, ValueError."""
    problem: Callable[[Settings], str | None]
    """Connect to it now. Return why it can't be used, in one sentence or more, or None."""

    def address(self, settings: Settings) -> ServerAddress:
        """Its address. Raises ValueError."""
        assert self.declared.form is not None, "the notary's servers have one form of URL each"
        return self.declared.form.parse(self.declared.url(settings) or "")


class StoreServer(NotaryServer, frozen=True, kw_only=True):
    """A server for the store."""

    open: OpenStores


class LedgerServer(NotaryServer, frozen=True, kw_only=True):
    """A server for the ledger."""

    open: Callable[[Settings, Any], Database]
    """Bring its tables to this version. Raises DatabaseGone, KeyFileError, OSError, ValueError."""
