"""Which message may come in which state, per direction of a channel. Anything else is fatal to that peer.

A table maps (state, message type) to the next state: default deny, as in a privilege-separated monitor. Each end of a
channel has two sessions (ipc/directions.py): every message received is held against the one, every message sent against
the other, so that an end that errs notices it itself, before its peer does.
"""

from collections.abc import Mapping

from ipc import messages as m

Table = Mapping[tuple[str, type[m.Message]], str]


class ProtocolError(Exception):
    """A message that its state does not allow. The peer sent it, and can't be trusted any further; or this end was
    about to send it, and did not."""


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
    ("starting", m.WorkerReady): "serving",
    ("serving", m.Result): "serving",
}

# What the front may send, as a worker sees it.
FRONT_TO_WORKER: Table = {
    ("open", m.Call): "open",
    ("open", m.Secrets): "open",
    ("open", m.Drop): "open",
    ("open", m.Retire): "retired",
}

# What the supervisor may send, as a front sees it.
SUPERVISOR_TO_FRONT: Table = {("new", m.StartFront): "started"} | {
    ("started", kind): "started"
    for kind in (
        m.AttachNotary, m.AttachPolicy, m.AttachReader, m.AttachWorker, m.WorkerGone, m.ModulesLoaded, m.Drain,
        m.CrashLoops, m.Reload, m.FinishReload, m.FollowSettings, m.Reloaded, m.PolicyEdited, m.WebhookTried,
        m.DelivererStarted,
    )
} | {("started", m.Stop): "stopping"} | {
    ("stopping", kind): "stopping"
    for kind in (
        m.AttachNotary, m.AttachPolicy, m.AttachReader, m.AttachWorker, m.WorkerGone, m.ModulesLoaded, m.Drain,
        m.CrashLoops, m.FinishReload, m.FollowSettings, m.Reloaded, m.WebhookTried, m.DelivererStarted, m.Stop,
    )
}  # fmt: skip

# What a front may send, as the supervisor sees it.
FRONT_TO_SUPERVISOR: Table = {("starting", m.FrontReady): "serving"} | {
    (state, kind): state
    for state in ("starting", "serving")
    for kind in (
        m.NeedWorker, m.WorkerServes, m.KillWorker, m.ReplacePolicy, m.NeedReader, m.LoadModules, m.RequestDrain,
        m.Draining, m.RequestReload, m.ReloadPrepared, m.Reloaded, m.SettingsFollowed, m.PolicyEdited, m.FrontStatus,
        m.TryWebhook,
    )
}  # fmt: skip

# What the supervisor may send, as the template sees it.
SUPERVISOR_TO_TEMPLATE: Table = {("new", m.StartTemplate): "started"} | {
    ("started", kind): "started" for kind in (m.LoadModules, m.SpawnWorker, m.KillForked, m.Ping)
}

# What the template may send, as the supervisor sees it.
TEMPLATE_TO_SUPERVISOR: Table = {("starting", m.TemplateReady): "ready"} | {
    ("ready", kind): "ready" for kind in (m.ModulesLoaded, m.WorkerStarted, m.WorkerExited, m.Pong)
}

# What a front may send, as the policy process sees it.
FRONT_TO_POLICY: Table = {
    ("empty", m.LoadPolicy): "empty",
    ("empty", m.UsePolicy): "loaded",
    ("empty", m.Ping): "empty",
    ("loaded", m.LoadPolicy): "loaded",
    ("loaded", m.UsePolicy): "loaded",
    ("loaded", m.Ask): "loaded",
    ("loaded", m.Ping): "loaded",
}

# What the policy process may send, as the front sees it.
POLICY_TO_FRONT: Table = {
    ("open", m.PolicyCompiled): "open",
    ("open", m.Verdict): "open",
    ("open", m.Pong): "open",
}

# What the supervisor may send, as the notary sees it.
SUPERVISOR_TO_NOTARY: Table = {
    ("new", m.StartNotary): "started",
    ("started", m.AttachFront): "started",
    ("started", m.AttachDeliverer): "started",
    ("started", m.TieWorker): "started",
    ("started", m.WorkerEnded): "started",
    ("started", m.FollowSettings): "started",
    ("started", m.Ping): "started",
    ("started", m.StopNotary): "stopping",
    ("stopping", m.WorkerEnded): "stopping",
}

# What the notary may send, as the supervisor sees it.
NOTARY_TO_SUPERVISOR: Table = {
    ("starting", m.NotaryReady): "ready",
    ("ready", m.FrontDetached): "ready",
    ("ready", m.WorkerBroke): "ready",
    ("ready", m.SettingsFollowed): "ready",
    ("ready", m.Pong): "ready",
}

# What a front may send, as the notary sees it.
FRONT_TO_NOTARY: Table = {("open", m.Asked): "open"}

# What the notary may send, as a front sees it.
NOTARY_TO_FRONT: Table = {
    ("new", m.InForce): "open",
    ("open", m.InForce): "open",
    ("open", m.Answered): "open",
    ("open", m.Begun): "open",
}

# What the supervisor may send, as the deliverer sees it.
SUPERVISOR_TO_DELIVERER: Table = {
    ("new", m.StartDeliverer): "started",
    ("started", m.AttachNotary): "started",
    ("started", m.TryWebhook): "started",
    ("started", m.Stop): "stopping",
    ("stopping", m.AttachNotary): "stopping",
}

# What the deliverer may send, as the supervisor sees it.
DELIVERER_TO_SUPERVISOR: Table = {
    ("starting", m.DelivererReady): "ready",
    ("ready", m.WebhookTried): "ready",
    ("ready", m.EndpointGone): "ready",
}

# What the deliverer may send, as the notary sees it.
DELIVERER_TO_NOTARY: Table = {("open", m.AskedByDeliverer): "open"}

# What the notary may send, as the deliverer sees it.
NOTARY_TO_DELIVERER: Table = {
    ("new", m.Welcome): "open",
    ("open", m.Answered): "open",
    ("open", m.Woken): "open",
}

# What the notary may send, as a worker sees it.
NOTARY_TO_WORKER: Table = {
    ("new", m.Tied): "tied",
    ("tied", m.Tied): "tied",
    ("tied", m.Word): "tied",
    ("tied", m.NoWord): "tied",
    ("tied", m.Look): "tied",
}

# What a worker may send, as the notary sees it.
WORKER_TO_NOTARY: Table = {("open", m.Result): "open", ("open", m.Seen): "open"}

# What a front may send, as a reader sees it.
FRONT_TO_READER: Table = {("new", m.VerifyChain): "asked"}

# What a reader may send, as the front sees it.
READER_TO_FRONT: Table = {
    ("walking", m.Walking): "walking",
    ("walking", m.ChainVerified): "answered",
    ("walking", m.NotRead): "answered",
}
