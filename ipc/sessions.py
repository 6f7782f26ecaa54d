"""Which message may come in which state, per channel. Anything else is fatal to that peer.

A table per channel maps (state, message type) to the next state. `Session.accept` is called for every message received
and, by the same table of the opposite direction, sent: default deny, as in a privilege-separated monitor.
"""

from collections.abc import Mapping

from ipc import messages as m

Table = Mapping[tuple[str, type[m.Message]], str]


class ProtocolError(Exception):
    """The peer sent a message that its state does not allow. The peer can't be trusted any further."""


class Session:
    """The state of one end of one channel for one direction of messages."""

    def __init__(self, table: Table, start: str) -> None:
        self._table = table
        self.state = start

    def accept(self, message: m.Message) -> None:
        """Move to the next state. Raises ProtocolError when the table has no such move."""
        following = self._table.get((self.state, type(message)))
        if following is None:
            raise ProtocolError(f"{type(message).__name__} while {self.state}")
        self.state = following


# What a worker may send, as the front sees it.
WORKER_TO_FRONT: Table = {
    ("starting", m.WorkerReady): "idle",
    ("calling", m.Result): "idle",
}

# What the front may send, as a worker sees it.
FRONT_TO_WORKER: Table = {
    ("new", m.Welcome): "idle",
    ("idle", m.GrantKeys): "idle",
    ("idle", m.Call): "idle",
    ("idle", m.Retire): "retired",
}

# What the supervisor may send, as a front sees it.
SUPERVISOR_TO_FRONT: Table = {("new", m.StartFront): "started"} | {
    ("started", kind): "started"
    for kind in (
        m.AttachPolicy, m.AttachWorker, m.WorkerGone, m.ModulesLoaded, m.Drain, m.Reload, m.Reloaded, m.PolicyEdited,
    )
} | {("started", m.Stop): "stopping"} | {
    ("stopping", kind): "stopping"
    for kind in (m.AttachPolicy, m.AttachWorker, m.WorkerGone, m.ModulesLoaded, m.Drain, m.Reloaded, m.Stop)
}  # fmt: skip

# What a front may send, as the supervisor sees it.
FRONT_TO_SUPERVISOR: Table = {("starting", m.FrontReady): "serving"} | {
    (state, kind): state
    for state in ("starting", "serving")
    for kind in (
        m.NeedWorker, m.KillWorker, m.ReplacePolicy, m.LoadModules, m.RequestDrain, m.Draining, m.RequestReload,
        m.Reloaded, m.PolicyEdited, m.FrontStatus,
    )
}  # fmt: skip

# What the supervisor may send, as the template sees it.
SUPERVISOR_TO_TEMPLATE: Table = {("new", m.StartTemplate): "started"} | {
    ("started", kind): "started" for kind in (m.LoadModules, m.SpawnWorker, m.KillForked)
}

# What the template may send, as the supervisor sees it.
TEMPLATE_TO_SUPERVISOR: Table = {("starting", m.TemplateReady): "ready"} | {
    ("ready", kind): "ready" for kind in (m.ModulesLoaded, m.WorkerStarted, m.WorkerExited)
}

# What a front may send, as the policy process sees it.
FRONT_TO_POLICY: Table = {
    ("empty", m.LoadPolicy): "empty",
    ("empty", m.UsePolicy): "loaded",
    ("loaded", m.LoadPolicy): "loaded",
    ("loaded", m.UsePolicy): "loaded",
    ("loaded", m.Ask): "loaded",
}

# What the policy process may send, as the front sees it.
POLICY_TO_FRONT: Table = {
    ("open", m.PolicyCompiled): "open",
    ("open", m.Verdict): "open",
}
