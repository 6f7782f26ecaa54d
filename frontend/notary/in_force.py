"""The epoch and the public keys of leases and receipts that the notary has announced.

Only the notary's messages change them. Before the first one a front serves no caller.
"""

from collections.abc import Callable

from ipc.messages.notary_frames import FrontFacts

NOTHING = FrontFacts(
    epoch=0, newest_evidence=0.0, lease_keys=(), lease_jwks='{"keys":[]}', receipt_jwks='{"keys":[]}',
    signing_keys={},
)  # fmt: skip


class NotaryFacts:
    """The latest InForce of the notary. `followers` are called with each one."""

    def __init__(self) -> None:
        self.now = NOTHING
        self.followers: list[Callable[[FrontFacts], None]] = []
        self.revoked: frozenset[str] = frozenset()
        """Sessions that an operator has ended."""
        self._epoch = 0

    def hear(self, message: FrontFacts) -> None:
        """Use a new InForce of the notary."""
        self.now, self.revoked = message, frozenset(message.revoked)
        self._epoch = max(self._epoch, message.epoch)
        for follow in self.followers:
            follow(message)

    @property
    def epoch(self) -> int:
        """The newest epoch known; never goes back."""
        return self._epoch

    def note_epoch(self, epoch: int) -> None:
        """Use the epoch of an answer."""
        self._epoch = max(self._epoch, epoch)
