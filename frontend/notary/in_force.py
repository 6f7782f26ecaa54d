"""What the notary has said is in force: the epoch, and the public keys of leases and receipts.

Only the notary's messages change it. Before the first one a front knows nothing and serves no caller.
"""

from collections.abc import Callable

from ipc.messages.notary_frames import InForce

NOTHING = InForce(
    epoch=0, newest_evidence=0.0, lease_keys=(), lease_jwks='{"keys":[]}', receipt_jwks='{"keys":[]}',
    signing_keys={},
)  # fmt: skip


class Known:
    """The latest word of the notary. `followers` hear each one."""

    def __init__(self) -> None:
        self.now = NOTHING
        self.followers: list[Callable[[InForce], None]] = []
        self.revoked: frozenset[str] = frozenset()
        """Sessions that an operator has ended."""
        self._epoch = 0

    def hear(self, message: InForce) -> None:
        """The notary says what is in force."""
        self.now, self.revoked = message, frozenset(message.revoked)
        self._epoch = max(self._epoch, message.epoch)
        for follow in self.followers:
            follow(message)

    @property
    def epoch(self) -> int:
        """The newest epoch known; never goes back."""
        return self._epoch

    def note_epoch(self, epoch: int) -> None:
        """An answer has told the epoch."""
        self._epoch = max(self._epoch, epoch)
