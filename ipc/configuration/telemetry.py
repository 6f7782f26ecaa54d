"""Settings of `[telemetry.otlp]`: the collector that gets spans of calls."""

import msgspec


class OtlpSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[telemetry.otlp]`: one collector, by OTLP over HTTP with protobuf. Without `endpoint` nothing is exported."""

    endpoint: str | None = None
    """Its URL without `/v1/traces`."""
    headers_file: str | None = None
    """A private file of `Name: value` lines: headers of every request. Read for each, so that it may be replaced."""
    ca_file: str | None = None
    """Certificates in PEM: the authorities that the collector is known by; None: the system's."""
    sample: float = 1.0
    """The share of calls that are exported, chosen by trace id."""


class TelemetrySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[telemetry]`."""

    otlp: OtlpSettings = OtlpSettings()
