"""An MCP server on standard input and output for tests, written against the protocol alone, that can be told to fail.

`python stdio_mcp_server.py [MODE]`: each tool is a way to behave. MODE `refuses` answers initialize with an error,
as the version `unknown` is answered in each mode; `dies` ends at once with a sentence on standard error, `lists FILE`
lists the tools of a JSON file, `pages` lists without end.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TOOLS = ("add", "count", "pid", "die", "hang", "flood", "noise", "long", "ask", "child", "say")


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def called(name: str, arguments: dict[str, Any], state: dict[str, int]) -> Any:
    """The text of the answer."""
    if name == "add":
        return arguments["a"] + arguments["b"]
    if name == "count":
        state["calls"] = state.get("calls", 0) + 1
        return state["calls"]
    if name == "pid":
        return os.getpid()
    if name == "die":
        os._exit(3)
    if name == "hang":
        time.sleep(3600)
    if name == "flood":
        while True:
            send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}})
    if name == "noise":
        sys.stdout.write("a line that is no message\n")
        sys.stdout.flush()
        time.sleep(3600)
    if name == "long":
        sys.stdout.write("x" * (9 << 20))
        sys.stdout.flush()
        time.sleep(3600)
    if name == "ask":
        send({"jsonrpc": "2.0", "id": "q1", "method": "sampling/createMessage", "params": {}})
        return json.loads(sys.stdin.readline())
    if name == "child":
        return subprocess.Popen(["sleep", "3600"], stdin=subprocess.DEVNULL).pid
    if name == "say":
        return "é" * arguments["times"]
    raise AssertionError(name)


def answer(message: dict[str, Any], state: dict[str, int], mode: str) -> dict[str, Any]:
    """The members of the answer beside `jsonrpc` and `id`."""
    method = message["method"]
    if method == "initialize":
        if mode == "refuses" or message["params"].get("protocolVersion") == "unknown":
            return {"error": {"code": -32602, "message": "Unsupported protocol version"}}
        version = message["params"]["protocolVersion"]
        info = {"name": "stdio-server", "version": "1"}
        return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
    if method == "tools/list" and mode == "pages":
        return {"result": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}], "nextCursor": "more"}}
    if method == "tools/list" and mode == "lists":
        return {"result": {"tools": json.loads(Path(sys.argv[2]).read_text())}}
    if method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
        return {"result": {"tools": tools}}
    if method == "tools/call":
        text = json.dumps(called(message["params"]["name"], message["params"].get("arguments", {}), state))
        return {"result": {"content": [{"type": "text", "text": text}]}}
    return {"error": {"code": -32601, "message": "no such method"}}


def main() -> None:
    mode = sys.argv[1] if len(sys.argv) > 1 else ""
    if mode == "dies":
        sys.exit("no key in the environment")
    state: dict[str, int] = {}
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message and message.get("method") == "notifications/unknown":
            send({"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "no such method"}})
        if "method" in message and "id" in message:
            send({"jsonrpc": "2.0", "id": message["id"], **answer(message, state, mode)})


if __name__ == "__main__":
    main()
