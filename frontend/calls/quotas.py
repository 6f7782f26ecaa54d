"""The quotas of principals: from their mapping, or from policy data for all (docs/configuration.md,
"Quotas"). The notary counts.
"""

from collections.abc import Callable

from frontend.policy.acl import PolicyFiles
from ipc.configuration.quotas import NO_QUOTA, Quota
from ipc.settings import IdentitySettings

MAX_KNOWN = 4096


class Quotas:
    """Answers for every principal, and remembers the answer while mappings and the policy's files stay the same."""

    def __init__(
        self, identity: Callable[[], IdentitySettings], policy_files: Callable[[], PolicyFiles | None]
    ) -> None:  # fmt: skip
        """Both say what is in force now: a reload exchanges them."""
        self._identity = identity
        self._policy_files = policy_files
        self._mapped: IdentitySettings | None = None
        self._of_mapping: dict[str, Quota] = {}
        self._files: PolicyFiles | None = None
        self._known: dict[str, Quota] = {}

    def of(self, principal: str) -> Quota:
        """The quota of a principal, which need not have any mapping."""
        files, mapped = self._policy_files(), self._identity()
        if mapped is not self._mapped:
            self._mapped = mapped
            self._of_mapping = {mapping.principal: mapping.quota for mapping in mapped.principals.values()}
            self._known.clear()
        if files is not self._files or len(self._known) >= MAX_KNOWN:
            self._files = files
            self._known.clear()
        quota = self._known.get(principal)
        if quota is None:
            default = NO_QUOTA if files is None else files.data.limits.default
            quota = self._known[principal] = self._of_mapping.get(principal, NO_QUOTA).over(default)
        return quota
