"""Settings of `[[identity.certificates]]`: names of client certificates by which agents elsewhere ask for leases."""

import msgspec


class CertificateSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[identity.certificates]]`: the principal of callers whose certificates have one name."""

    san: str
    """A URI, a DNS name or an e-mail address, as `ipc/texts/san_patterns.py` reads it."""
    principal: str
    """The principal, or a form: text before `{san}`, the name as `SanPattern.spelled` has it, or before `{*}`, the part
    that `*` stands for."""
    scopes: tuple[str, ...] = ("tools:call",)
    owner: str | None = None

    @property
    def named_principals(self) -> tuple[str, ...]:
        """The principals that this row names outright."""
        return () if self.principal.endswith("}") else (self.principal,)
