"""Counts of calls by time, as operators ask for them."""

from typing import Final, Literal

from frontend.contract.forms import Moment, Query

HOURS: Final = {"hour": 1, "day": 24}
MAX_BUCKETS: Final = {"hour": 24 * 31, "day": 400}
DEFAULT_BUCKETS: Final = {"hour": 24, "day": 30}


class SummaryQuery(Query, frozen=True, kw_only=True):
    """The span of time, and its steps."""

    after: Moment | None = None
    """The first hour or day is the one that holds this time. By default 24 hours, or 30 days, end with the last one."""
    before: Moment | None = None
    """The last hour or day is the one that ends at this time, or holds it; by default that of now."""
    step: Literal["hour", "day"] = "hour"
    """How long a bucket is. At most 744 hours (31 days), or 400 days."""
