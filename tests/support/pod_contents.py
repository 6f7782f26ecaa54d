"""ConfigMaps and Secrets of a gateway in Kubernetes, from the folder that `gateway init --production` makes."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.support.kubernetes import Resource, base, one_of, resources
from tests.support.processes import GATEWAY

PUBLIC_URL = "https://gateway.example"
PRINCIPAL = "billing-agent"
ACTION = "text_digest"


def made(folder: Path) -> Path:
    """The folder of a new gateway."""
    subprocess.run(
        [GATEWAY, "init", "--production", str(folder), "--operator", "ann", "--public-base-url", PUBLIC_URL,
         "--state-dir", str(folder / "state")],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    (folder / "state").mkdir(mode=0o700)
    return folder


def map_agent(folder: Path, uid: int) -> None:
    """Say in gateway.toml who this user is."""
    with (folder / "gateway.toml").open("a") as file:
        file.write(f"\n[identity.peercred.principals.{uid}]\n")
        file.write(f'principal = "{PRINCIPAL}"\nscopes = ["tools:call"]\nowner = "team"\n')


def allow(folder: Path, *actions: str) -> None:
    """Say in the policy what the agent may call."""
    file = folder / "policy" / "data.json"
    data: dict[str, Any] = json.loads(file.read_text())
    data["acl"] = {PRINCIPAL: {"actions": list(actions)}}
    data["limits"] = {"default": {"max_calls_per_hour": 1_000_000, "max_sessions": 32}}
    file.write_text(json.dumps(data))


def contents(folder: Path) -> dict[str, dict[str, bytes]]:
    """All of it as docs/kubernetes.md hands it to the cluster."""
    return {
        "gateway-config": {"gateway.toml": (folder / "gateway.toml").read_bytes()},
        "gateway-actions": _files(folder / "actions"),
        "gateway-policy": _files(folder / "policy"),
        "gateway-keys": _files(folder / "keys") | _named(folder / "receipt-keys.jwks.json"),
        "gateway-secrets": _named(folder / "secrets.json"),
    }


def pod_of(form: str) -> Resource:
    """The specification of a form's pods."""
    found: Resource = one_of(resources(base(form)), "StatefulSet", "gateway")["spec"]["template"]["spec"]
    return found


def _files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def _named(*files: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in files}
