"""Names of what the store keeps in Redis. One hash tag: in a cluster all of it lies in one slot."""


class RedisKeys:
    """Those below one prefix."""

    def __init__(self, prefix: str) -> None:
        self.base = base = f"{{{prefix}}}:"
        self.marker = f"{base}marker"
        """Which data this is: a Redis that lost its data has another one, or none."""
        self.epoch = f"{base}epoch"
        self.live = f"{base}live"
        """Approvals that wait or are claimed: id -> row."""
        self.version = f"{base}live:version"
        """Grows with every change of approvals."""
        self.ended = f"{base}ended"
        """Approvals that have ended: id -> row, for lists."""
        self.ended_at = f"{base}ended:by-age"
        """Ids of the same by `expires_at`."""
        self.kept = f"{base}kept:"
        """The keys of ended approvals with their requests begin so: `record:` and an id, `of:` and a principal (ids by
        their end), `by-age` (the same of all), `sizes` (id -> bytes and principal), `bytes` (principal -> sum)."""
        self.outputs = f"{base}outputs:"
        """Likewise those of kept outputs, by the ids of their calls."""
        self.revoked = f"{base}sessions:revoked"
        """Sessions that were revoked by the end of their leases."""
        self.standing = f"{base}standing"
        """Standing approvals: id -> row."""
        self.standing_until = f"{base}standing:until"
        """The same ids -> when their time is over."""
        self.probe = f"{base}probe"

    def unit(self, notary: str) -> str:
        """The record of the last unit of one notary, by the id of its ledger."""
        return f"{self.base}unit:{notary}"

    def proof(self, key: str) -> str:
        """A proof that was used."""
        return f"{self.base}proof:{key}"

    def budget(self, session_id: str) -> str:
        """The calls that a session began with (`max`) and has left (`left`)."""
        return f"{self.base}budget:{session_id}"

    def calls(self, principal: str) -> str:
        """Minute -> calls of a principal; `v` grows with every change."""
        return f"{self.base}calls:{principal}"

    def counted(self, approval_id: str) -> str:
        """Where the call of a hold is counted: minute and principal."""
        return f"{self.base}counted:{approval_id}"

    def cap(self, name: str) -> str:
        """Steps of one counter of a cap: end of the step, `:` and the digits' place -> digits; `v` grows with every
        change."""
        return f"{self.base}cap:{name}"

    def cap_subjects(self, name: str) -> str:
        """Subjects of a cap by the time when their last amount counts no more."""
        return f"{self.base}cap-subjects:{name}"

    def cap_reserved(self, approval_id: str) -> str:
        """The reservations of a held call."""
        return f"{self.base}cap-reserved:{approval_id}"

    def standing_of(self, action_id: str, principal: str) -> str:
        """Ids of the standing approvals for one action and principal."""
        return f"{self.base}standing-of:{action_id}:{principal}"

    def standing_calls(self, standing_id: str) -> str:
        """The count of the calls of one of them; `v` grows with every change."""
        return f"{self.base}standing-calls:{standing_id}"

    def sessions(self, epoch: int, principal: str) -> str:
        """Session ids by the end of their leases."""
        return f"{self.base}sessions:{epoch}:{principal}"

    def last_session(self, holder: str) -> str:
        """The last session of a holder of leases: its id, its epoch, and when its last lease ends."""
        return f"{self.base}last:{holder}"

    def call_key(self, name: str) -> str:
        """The call that has a key."""
        return f"{self.base}key:{name}"

    def call_keys_of(self, principal: str) -> str:
        """Names of a principal's keys by the time when they expire."""
        return f"{self.base}keys:{principal}"

    def call_end(self, call_id: str) -> str:
        """The end of a call that has a key."""
        return f"{self.base}end:{call_id}"

    def hold(self, approval_id: str) -> str:
        """One approval: `row`, `outcome`, `summary`, `body`."""
        return f"{self.base}hold:{approval_id}"
