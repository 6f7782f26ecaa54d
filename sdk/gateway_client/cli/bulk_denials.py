"""Denying everything that one principal has waiting: an event each, signed each.

Goes on after a call that was decided meanwhile, and says how many it has denied. Reads the list of what waits again
until nothing is left, a bounded number of times.
"""

from gateway_client.cli import deciding
from gateway_client.cli.deciding import to_sign
from gateway_client.cli.desk import CliContext
from gateway_client.cli.display.safe import safe
from gateway_client.cli.exits import Failure, ScriptExit
from gateway_client.errors import NotFound
from gateway_client.operators import OperatorClient

AT_ONCE = 200
MOST_ROUNDS = 50


def deny_all(desk: CliContext, principal: str, reason: str, is_agreed: bool) -> None:
    """Deny all pending calls of the principal. Raises Failure, GatewayError."""
    denied, decided = list[str](), set[str]()
    with desk.operator() as operator:
        waiting = operator.approvals("pending", 1, principal=principal)
        number = waiting.total if waiting.total is not None else len(waiting.approvals)
        desk.confirm(f"deny {number} held calls of {safe(principal)}?", is_agreed)
        for _ in range(MOST_ROUNDS):
            page = operator.approvals("pending", AT_ONCE, principal=principal)
            left = [one.approval_id for one in page.approvals if one.approval_id not in decided]
            if not left:
                break
            for approval_id in left:
                decided.add(approval_id)
                if _deny(operator, approval_id, reason):
                    denied.append(approval_id)
    if desk.is_json:
        desk.out.document({"principal": principal, "denied": denied, "decided_meanwhile": len(decided) - len(denied)})
        return
    rest = len(decided) - len(denied)
    more = f"; {rest} were decided meanwhile" if rest else ""
    desk.out.line(f"denied {len(denied)} held calls of {safe(principal)}{more}")


def _deny(operator: OperatorClient, approval_id: str, reason: str) -> bool:
    try:
        deciding.deny(operator, approval_id, reason, to_sign(operator.approval(approval_id)))
    except NotFound:
        return False
    except Failure as failure:
        if failure.exit_code is not ScriptExit.NOT_FOUND:
            raise
        return False
    return True
