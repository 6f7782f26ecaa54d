"""One table: which function performs which operation, and which of them write."""

from typing import Any, Final

from ipc import messages as m
from notary.operations.acting import check_keys, follow_keys, issue, note, revoke
from notary.operations.closing import Lost, Reported, lose_call, report_call, resolve_intent, withdraw_call
from notary.operations.delivering import (
    Orphaned,
    claim_deliveries,
    give_up_orphaned,
    list_deliveries,
    redeliver,
    settle_delivery,
)
from notary.operations.holding import hold, refuse
from notary.operations.looking import (
    due_holds,
    get_hold,
    list_holds,
    list_unresolved,
    next_delivery,
    orphaned_holds,
    query_events,
    read_budget,
    read_epoch,
    read_ledger,
    read_store,
    show_intent,
    show_receipt,
    trace_of_approval,
    unsettled_holds,
)
from notary.operations.moving import move_hold, void_holds
from notary.operations.opening import assign_call, enter, open_call
from notary.operations.proving import prove, prove_consistency, read_checkpoint
from notary.operations.reconciling import StoreChanged, follow_store
from notary.operations.refusing import TellRefusals, tell_refusals
from notary.operations.sessions import list_sessions, revoke_session
from notary.operations.verifying import LookedAgain, note_look, verify_intent
from notary.operations.witnessing import cosign, next_checkpoint, note_trouble
from notary.unit import Handler

WRITING: Final[dict[type[m.Operation[Any]], Handler]] = {
    m.Enter: enter,
    m.Open: open_call,
    m.Assign: assign_call,
    m.Withdraw: withdraw_call,
    Reported: report_call,
    Lost: lose_call,
    m.ResolveIntent: resolve_intent,
    LookedAgain: note_look,
    m.Refuse: refuse,
    TellRefusals: tell_refusals,
    m.Hold: hold,
    m.Issue: issue,
    m.Note: note,
    m.Revoke: revoke,
    m.RevokeSession: revoke_session,
    m.MoveHold: move_hold,
    m.VoidHolds: void_holds,
    m.FollowKeys: follow_keys,
    StoreChanged: follow_store,
    m.ClaimDeliveries: claim_deliveries,
    m.SettleDelivery: settle_delivery,
    Orphaned: give_up_orphaned,
    m.RedeliverDeliveries: redeliver,
    m.Cosign: cosign,
}
READING: Final[dict[type[m.Operation[Any]], Handler]] = {
    m.ReadBudget: read_budget,
    m.ReadEpoch: read_epoch,
    m.GetHold: get_hold,
    m.ListHolds: list_holds,
    m.ListSessions: list_sessions,
    m.DueHolds: due_holds,
    m.OrphanedHolds: orphaned_holds,
    m.UnsettledHolds: unsettled_holds,
    m.ReadStore: read_store,
    m.ShowReceipt: show_receipt,
    m.TraceOfApproval: trace_of_approval,
    m.ListUnresolved: list_unresolved,
    m.ShowIntent: show_intent,
    m.VerifyIntent: verify_intent,
    m.QueryEvents: query_events,
    m.NextDelivery: next_delivery,
    m.ListDeliveries: list_deliveries,
    m.CheckKeys: check_keys,
    m.ReadLedger: read_ledger,
    m.ReadCheckpoint: read_checkpoint,
    m.Prove: prove,
    m.ProveConsistency: prove_consistency,
    m.NextCheckpoint: next_checkpoint,
    m.NoteTrouble: note_trouble,
}
PROVING: Final = frozenset({m.ReadCheckpoint, m.Prove, m.ProveConsistency})
"""Operations that a checkpoint of everything durable is signed for."""
HANDLERS: Final[dict[type[m.Operation[Any]], Handler]] = {**WRITING, **READING}
