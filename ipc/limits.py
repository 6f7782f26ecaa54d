"""Caps on what crosses a process boundary, in bytes and counts.

Every cap is checked before memory is allocated for what it caps.
"""

FRAME_HEADER_BYTES = 4
"""Big-endian unsigned length that precedes every frame."""

MAX_CONTROL_FRAME = 16 * 1024 * 1024
"""Supervisor channels: settings, module lists."""

MAX_POLICY_FRAME = 16 * 1024 * 1024
"""Front to policy: a whole policy with its data."""

MAX_VERDICT_FRAME = 256 * 1024
"""Policy to front: one answer."""

MAX_CALL_FRAME = 8 * 1024 * 1024
"""Front to worker: one plan with its secrets."""

MAX_RESULT_FRAME = 16 * 1024 * 1024
"""Worker to front: one result."""

MAX_FDS_PER_MESSAGE = 4
"""File descriptors that may travel with one control message."""

MAX_DEPTH_JSON = 32
"""Nesting of a JSON document from outside (decisions, "Discovery and results")."""
