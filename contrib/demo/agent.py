"""The demo's agent: a process of its own around the public client package, unchanged.

Reads one JSON command a line on standard input, answers with one JSON line on standard output. It knows the
gateway's address and nothing else.
"""

import asyncio
import json
import sys
from typing import Any

from latchgate import LatchGateApprovalRequired, LatchGateClient, LatchGateError

ANSWER_SECONDS = 120.0


async def perform(client: LatchGateClient, command: dict[str, Any]) -> dict[str, Any]:
    """One command; the client's own results and exceptions are what the demo shows."""
    match command["do"]:
        case "connect":
            await client.connect(max_calls=command.get("max_calls"))
            return {"session_id": client.session_id}
        case "execute":
            result = await client.execute(command["action"], command["body"])
            return {
                "output": result.output,
                "receipt_id": result.receipt_id,
                "trace_id": result.trace_id,
                "verification": result.verification,
            }
        case "poll":
            status = await client.get_approval_status(command["approval_id"])
            return {"status": status.status, "receipt_id": status.receipt_id, "reason": status.raw.get("deny_reason")}
        case "receipt":
            receipt = await client.get_receipt(command["receipt_id"])
            return {"kind": receipt.normalized_result["kind"], "is_fully_successful": receipt.is_fully_successful}
    raise ValueError(f"the demo's agent does not know {command['do']!r}")


async def main(base_url: str) -> None:
    """Serve commands until standard input ends."""
    async with LatchGateClient(base_url=base_url, agent_id="demo-agent", timeout=ANSWER_SECONDS) as client:
        while line := await asyncio.to_thread(sys.stdin.readline):
            try:
                answer = await perform(client, json.loads(line))
            except LatchGateApprovalRequired as held:
                answer = {"approval_id": held.approval_id}
            except LatchGateError as error:
                answer = {"error": type(error).__name__, "message": str(error)}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
