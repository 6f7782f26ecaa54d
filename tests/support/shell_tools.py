"""Stand-ins for the shell tools of docs/api.md, for machines without them: as much of each as the document uses.

Where a machine has the real tool, that one runs.
"""

import shutil
import sys
from pathlib import Path

CURL = """
import sys
import httpx

arguments, headers, body, url = iter(sys.argv[1:]), {}, None, ""
for one in arguments:
    if one == "-H":
        name, _, value = next(arguments).partition(": ")
        headers[name] = value
    elif one == "--json":
        body = next(arguments)
        headers |= {"Content-Type": "application/json", "Accept": "application/json"}
    elif not one.startswith("--"):
        url = one
answer = httpx.request("GET" if body is None else "POST", url, headers=headers, content=body, timeout=120)
sys.stdout.write(answer.text)
sys.exit(22 if answer.status_code >= 400 else 0)
"""
JQ = """
import json
import sys

option, path, *files = sys.argv[1:]
assert option == "-r" and path.startswith(".")
with open(files[0]) if files else sys.stdin as source:
    print(json.load(source)[path[1:]])
"""
OPENSSL = """
import sys
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

assert sys.argv[1:6] == ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"] and sys.argv[6] == "-out"
key = ec.generate_private_key(ec.SECP256R1())
with open(sys.argv[7], "wb") as file:
    file.write(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
"""
STAND_INS = {"curl": CURL, "jq": JQ, "openssl": OPENSSL}


def shell_tools(folder: Path, *, only_ours: bool = False) -> Path:
    """Fill `folder` with `python3` and whatever this machine lacks; to be put in front of PATH."""
    folder.mkdir()
    _write(folder / "python3", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    for name, program in STAND_INS.items():
        if only_ours or shutil.which(name) is None:
            _write(folder / name, f"#!{sys.executable}\n{program}")
    return folder


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
