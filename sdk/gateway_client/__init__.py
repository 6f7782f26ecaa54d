"""Client of the action enforcement gateway: agents, operators, and evidence verified offline."""

from gateway_client.agents import AgentClient, AsyncAgentClient
from gateway_client.calling.core import Limits
from gateway_client.calling.leases import LeaseTerms
from gateway_client.contract.evidence import Bundle, Consistency, ShownCheckpoint
from gateway_client.contract.receipts import Receipt
from gateway_client.errors import (
    ActionFailed,
    AlreadyExecuted,
    ApprovalDenied,
    ApprovalEnded,
    ApprovalPending,
    ApprovalsMissing,
    AuthenticationFailed,
    Conflict,
    Denied,
    EvidenceRefused,
    GatewayError,
    GatewayFault,
    Invalid,
    NotFound,
    OutcomeUnknown,
    ProtocolViolation,
    RateLimited,
    Unavailable,
    Unreachable,
)
from gateway_client.evidence.bundles import BundleVerdict, ProvenCall, verify_bundle
from gateway_client.evidence.chain import ExportReport as ChainReport
from gateway_client.evidence.chain import verify_chain
from gateway_client.evidence.notes import Checkpoint, VerifierKey, open_checkpoint, open_note
from gateway_client.evidence.receipts import ReceiptVerdict, SignatureStatus, verify_receipt, verify_receipts
from gateway_client.evidence.tree import check_consistency, check_inclusion
from gateway_client.keys import KeyFileError, OperatorCredential, ProofKey
from gateway_client.operators import AsyncOperatorClient, OperatorClient
from gateway_client.results import EventFilter, Executed, Held, Poll
from gateway_client.version import __version__
from gateway_client.wire.address import Address
from gateway_client.wire.flows import Clock

__all__ = [
    "ActionFailed",
    "Address",
    "AgentClient",
    "AlreadyExecuted",
    "ApprovalDenied",
    "ApprovalEnded",
    "ApprovalPending",
    "ApprovalsMissing",
    "AsyncAgentClient",
    "AsyncOperatorClient",
    "AuthenticationFailed",
    "Bundle",
    "BundleVerdict",
    "ChainReport",
    "Checkpoint",
    "Clock",
    "Conflict",
    "Consistency",
    "Denied",
    "EventFilter",
    "EvidenceRefused",
    "Executed",
    "GatewayError",
    "GatewayFault",
    "Held",
    "Invalid",
    "KeyFileError",
    "LeaseTerms",
    "Limits",
    "NotFound",
    "OperatorClient",
    "OperatorCredential",
    "OutcomeUnknown",
    "Poll",
    "ProofKey",
    "ProtocolViolation",
    "ProvenCall",
    "RateLimited",
    "Receipt",
    "ReceiptVerdict",
    "ShownCheckpoint",
    "SignatureStatus",
    "Unavailable",
    "Unreachable",
    "VerifierKey",
    "__version__",
    "check_consistency",
    "check_inclusion",
    "open_checkpoint",
    "open_note",
    "verify_bundle",
    "verify_chain",
    "verify_receipt",
    "verify_receipts",
]
