"""The bank's state: paid transfers, and the requests it received. Gone with the process."""

import itertools
import json
import re
import threading
from collections import deque
from dataclasses import dataclass
from typing import Any

MOST_KEPT = 100
TRANSFERS = "/v1/transfers"
_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)


@dataclass(frozen=True, slots=True)
class BankRequest:
    """One request. `path` with its query; `is_authorised`: it brought a bearer token, which nothing here keeps."""

    method: str
    path: str
    is_authorised: bool
    body: bytes


class Bank:
    """Answers requests; for several threads at once."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._paid: deque[dict[str, Any]] = deque(maxlen=MOST_KEPT)
        self._lock = threading.Lock()

    def answer(self, asked: BankRequest) -> tuple[int, dict[str, Any]]:
        """Status and JSON body."""
        is_transfer = asked.path.partition("?")[0] == TRANSFERS
        if is_transfer and asked.method == "POST":
            return self._pay(asked)
        if is_transfer:
            with self._lock:
                return 200, {"transfers": list(self._paid)}
        told: dict[str, Any] = {"upstream": "echo bank of gateway dev", "method": asked.method, "path": asked.path}
        if asked.method == "GET":
            return 200, told
        return 201, told | {"is_authorised": asked.is_authorised, "received": _json_or_none(asked.body)}

    def _pay(self, asked: BankRequest) -> tuple[int, dict[str, Any]]:
        if not asked.is_authorised:
            return 401, {"error": "no bearer token"}
        order = _json_or_none(asked.body)
        if not _is_order(order):
            return 422, {"error": "a transfer has to (text), amount_cents (1 or more) and currency (three letters)"}
        with self._lock:
            paid = {
                "transfer_id": f"tr_{next(self._numbers):06}", "state": "paid",
                **{name: order[name] for name in ("to", "amount_cents", "currency")},
            }  # fmt: skip
            self._paid.append(paid)
        return 201, paid


def _json_or_none(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _is_order(order: Any) -> bool:
    if not isinstance(order, dict):
        return False
    to, amount, currency = (order.get(name) for name in ("to", "amount_cents", "currency"))
    return (
        isinstance(to, str) and bool(to) and type(amount) is int and amount > 0
        and isinstance(currency, str) and _CURRENCY.fullmatch(currency) is not None
    )  # fmt: skip
