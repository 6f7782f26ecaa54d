"""Times as operators read them: what is left, what has gone by, and the hour of an event in local time."""

import math
import time
from datetime import UTC, datetime, timedelta

from gateway_client.cli.display.safe import safe, short


def parse(text: str | None) -> float | None:
    """Unix seconds of an ISO 8601 time; None for anything else."""
    try:
        moment = datetime.fromisoformat(text or "")
        return moment.timestamp() if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def left(expires_at: str | None) -> float | None:
    """Seconds until then by this host's clock, below zero when it is over."""
    moment = parse(expires_at)
    return None if moment is None else moment - time.time()


def countdown(expires_at: str | None) -> str:
    """`4:12`, or what there is instead of it."""
    seconds = left(expires_at)
    if seconds is None:
        return "unknown"
    return "over" if seconds <= 0 else span(seconds)


def span(seconds: float) -> str:
    """`0:07`, `4:12`, `3:04:05`, `2 d 3:04:05`."""
    whole = math.floor(seconds)
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3600)
    text = f"{rest // 60}:{rest % 60:02}" if not hours and not days else f"{hours}:{rest // 60:02}:{rest % 60:02}"
    return f"{days} d {text}" if days else text


def clock(timestamp: str) -> str:
    """`12:04:31.220` of today in local time, with the date for other days; the text itself when it is no time."""
    seconds = parse(timestamp)
    if seconds is None:
        return short(timestamp, 32)
    try:
        moment = datetime.fromtimestamp(seconds).astimezone()
    except (ValueError, OverflowError, OSError):
        return short(timestamp, 32)
    shown = moment.strftime("%H:%M:%S.") + f"{moment.microsecond // 1000:03}"
    return shown if moment.date() == datetime.now().astimezone().date() else f"{moment:%Y-%m-%d} {shown}"


def brief(timestamp: str) -> str:
    """`clock` in twelve columns: `12:04:31.220` of today, `11-23 12:04` of another day."""
    shown = clock(timestamp)
    return shown if len(shown) <= 12 or parse(timestamp) is None else shown[5:16]


def now() -> str:
    """`12:04:31`, the local time of this moment."""
    return datetime.now().astimezone().strftime("%H:%M:%S")


def moved(timestamp: str, seconds: float) -> str:
    """`timestamp`, so many seconds later, in the gateway's form. Raises ValueError for what is no time."""
    try:
        moment = datetime.fromisoformat(timestamp).astimezone(UTC) + timedelta(seconds=seconds)
    except OverflowError:
        raise ValueError("this is beyond all time") from None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def bound(text: str) -> str:
    """A bound of a query as the gateway wants it: ISO 8601, or `90s`, `15m`, `6h`, `2d` ago. Raises ValueError."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
    if text[:-1].isascii() and text[:-1].isdigit() and text[-1:] in units and len(text) < 9:
        moment = datetime.now(UTC) - timedelta(seconds=int(text[:-1]) * units[text[-1]])
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{safe(text)!r} is no time: ISO 8601, or 15m, 6h, 2d for so long ago") from None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
