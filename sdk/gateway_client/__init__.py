"""Client of the action enforcement gateway: agents, operators, and receipts verified offline."""

from gateway_client.address import Address
from gateway_client.agents import AgentClient, AsyncAgentClient
from gateway_client.chain import ChainReport, verify_chain
from gateway_client.core import Limits
from gateway_client.errors import (
    ActionFailed,
    ApprovalDenied,
    ApprovalEnded,
    ApprovalPending,
    AuthenticationFailed,
    Conflict,
    Denied,
    GatewayError,
    GatewayFault,
    Invalid,
    NotFound,
    ProtocolViolation,
    RateLimited,
    Unavailable,
    Unreachable,
)
from gateway_client.flows import Clock
from gateway_client.keys import KeyFileError, OperatorCredential, ProofKey
from gateway_client.leases import LeaseTerms
from gateway_client.operator_results import EventFilter
from gateway_client.operators import AsyncOperatorClient, OperatorClient
from gateway_client.receipts import ReceiptVerdict, SignatureStatus, verify_receipt, verify_receipts
from gateway_client.results import Executed, Held, Poll, Receipt
from gateway_client.version import __version__

__all__ = [
    "ActionFailed",
    "Address",
    "AgentClient",
    "ApprovalDenied",
    "ApprovalEnded",
    "ApprovalPending",
    "AsyncAgentClient",
    "AsyncOperatorClient",
    "AuthenticationFailed",
    "ChainReport",
    "Clock",
    "Conflict",
    "Denied",
    "EventFilter",
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
    "Poll",
    "ProofKey",
    "ProtocolViolation",
    "RateLimited",
    "Receipt",
    "ReceiptVerdict",
    "SignatureStatus",
    "Unavailable",
    "Unreachable",
    "__version__",
    "verify_chain",
    "verify_receipt",
    "verify_receipts",
]
