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

MAX_CALL_FRAME = 16 * 1024 * 1024
"""Front to worker: one plan, as it is hashed. Its texts are JSON within JSON, where a quote takes up to eight bytes."""

MAX_RESULT_FRAME = 16 * 1024 * 1024
"""Worker to front: one result."""

MAX_NOTARY_FRAME = 32 * 1024 * 1024
"""Front to notary and back: what one turn of a loop asks, what one unit answers."""

MAX_READER_FRAME = 1024 * 1024
"""Front to reader and back: one question, one report."""

MAX_BROKER_FRAME = 256 * 1024
"""Front to broker and back: one question, one answer."""

MAX_EXPORT_FRAME = 4 * 1024 * 1024
"""Front to exporter: one batch of calls that have ended. Its answer is a few numbers."""

READER_SECONDS = 600.0
"""How long a reader may live. Supervisor and front both hold it to that."""

COMPILE_SECONDS = 540.0
"""How long the compiler of one module may take by the clock: three times the processor time that it may have, since the
machine may be busy with other things. A front that starts waits longer, and the supervisor for the front."""

MAX_CALL_SECONDS = 3600.0
"""Longest time limit of a call. The notary takes a lost call for one that may still end until then."""

MAX_OPERATIONS = 256
"""Operations in one frame and in one unit of the notary: what bounds the time that others wait."""

MAX_AHEAD = 16
"""Calls that one worker has been given, those that it runs included: as many are lost with it at most. Each must fit
into its channel beside the others: see AHEAD_BYTES."""

HTTP_WORKER_THREADS = 2 * MAX_AHEAD + 3
"""Threads of an http worker: one and a resolver for each shared call; its loop, the clock and one more resolver."""

AHEAD_BYTES = 16 * 1024
"""Largest plan, as it is hashed, of a call that is given to a worker which runs another. MAX_AHEAD of them fit into a
socket whose send buffer is as large as an unprivileged process can make it on an untuned kernel."""

MAX_SHARED_MEMORY_MB = 64
"""Guest memory of one call with isolation "shared": MAX_AHEAD of them together get what a call alone may have."""

MAX_FDS_PER_MESSAGE = 5
"""File descriptors that may travel with one control message: a front's sockets, of four kinds, and its memory."""

MAX_DEPTH_JSON = 32
"""Nesting of a JSON document from outside (docs/decisions/clients.md, "Discovery and results")."""

MAX_VALUES_JSON = 100_000
"""Values in a JSON document from outside, containers included: 1 MB of `{}` has 350,000, which take 25 MB and a quarter
of a second."""

MAX_ACTION_FILE_BYTES = 256 * 1024 * 1024
"""Largest file that an action may have written: what a manifest may allow, and the kernel's limit of a worker."""
