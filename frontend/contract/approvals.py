"""Held calls: polled by agents; listed, read and decided by operators (docs/decisions/approvals.md, "Approvals")."""

from typing import Annotated, Literal

from msgspec import Meta

from frontend.contract.forms import JsonBody, Moment, Query

ListedState = Literal["pending", "claimed", "approved", "denied", "failed"]
DEFAULT_LIST, MAX_LIST = 50, 200


class ApprovalQuery(Query, frozen=True, kw_only=True):
    """Which approvals to list."""

    status: ListedState | None = None
    """Only those in this state; all when omitted."""
    principal: str | None = None
    """Only those of this principal."""
    action_id: str | None = None
    """Only calls of this action."""
    before: Moment | None = None
    """Only those created before this time. For the next page of a list without `group`: a millisecond after that of
    the last item; those of the same millisecond come again."""
    limit: Annotated[int, Meta(ge=1, le=MAX_LIST)] = DEFAULT_LIST
    """How many at most, the newest first."""
    group: Literal["principal"] | None = None
    """`principal`: the newest of each principal are chosen, then the second of each, and so on, so that no principal
    hides another's."""


class ApprovalDetailQuery(Query, frozen=True, kw_only=True):
    """Which approval to show."""

    ended: Literal["true"] | None = None
    """`true`: one that has expired, too, as long as it is kept."""


class ApproveQuery(Query, frozen=True, kw_only=True):
    """The rule to learn from the call, once it has succeeded. It must match what the call waits for."""

    learn_domain: str | None = None
    """A domain, or `*.` and a domain, that the action may reach from then on."""
    learn_path: str | None = None
    """A path pattern that the action may touch from then on."""


class ApproveRequest(JsonBody, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """An approval needs no body, unless signatures are required; what else a client sends is not kept."""

    signature: str | None = None
    """The operator's own signature of this decision: a compact JWS of the `typ` `approval+jws`."""


class DenyRequest(JsonBody, frozen=True, kw_only=True):
    """Why a call is denied."""

    reason: str | None = None
    """Shown to the agent; control characters are stripped, and it is cut to 500 characters."""
    signature: str | None = None
    """The operator's own signature of this decision: a compact JWS of the `typ` `approval+jws`."""
