"""The weakened settings of this installation, as fields of every audit event of this process."""

import msgspec


class Weakened(msgspec.Struct, frozen=True):
    """`dev_mode` and `sandbox_degraded` appear in events only while true: their absence is the good case."""

    dev_mode: bool = False
    sandbox_degraded: bool = False

    def fields(self) -> dict[str, bool]:
        """The event fields to add."""
        fields = {}
        if self.dev_mode:
            fields["dev_mode"] = True
        if self.sandbox_degraded:
            fields["sandbox_degraded"] = True
        return fields
