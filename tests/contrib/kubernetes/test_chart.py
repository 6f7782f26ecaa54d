"""contrib/kubernetes: each object of chart and bases is one that Kubernetes takes, and each container is confined."""

import json
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from ipc.settings import LimitSettings, Settings
from supervisor.settings.checks.production import broken_rules
from supervisor.settings.config import check, open_document
from tests.support.kubernetes import (
    FOLDER,
    FORMS,
    NEWEST,
    OLDEST,
    Resource,
    base,
    built,
    one_of,
    rendered,
    resources,
)
from tests.support.manifests import REPOSITORY

MADE_BY_USERS = {
    "ConfigMap": {"gateway-config", "gateway-actions", "gateway-policy"},
    "Secret": {"gateway-keys", "gateway-secrets", "gateway-edge-tls", "gateway-redis", "gateway-postgres"},
}
GATEWAY, EDGE, AGENT = 10001, 10003, 20001
forms = pytest.mark.parametrize("form", FORMS)


def pod(form: str, name: str = "gateway") -> Resource:
    """The specification of a form's pods."""
    found: Resource = one_of(resources(base(form)), "StatefulSet", name)["spec"]["template"]["spec"]
    return found


def containers(spec: Resource) -> list[Resource]:
    return [*spec.get("initContainers", []), *spec["containers"]]


def named(spec: Resource, name: str) -> Resource:
    (found,) = [one for one in containers(spec) if one["name"] == name]
    return found


def values(container: Resource) -> dict[str, str]:
    return {one["name"]: one["value"] for one in container["env"]}


def settings(form: str) -> Settings:
    """The gateway's settings, from the variables of its container."""
    loaded = check(*open_document(None, values(named(pod(form), "gateway"))))
    assert loaded.settings is not None, loaded.problems
    return loaded.settings


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@forms
def test_each_object_has_the_form_that_kubernetes_gives_it(form: str, version: str) -> None:
    found = resources(base(form))
    assert {"StatefulSet", "NetworkPolicy", "PodDisruptionBudget", "Service"} <= {one["kind"] for one in found}
    for one in found:
        kubernetes_validate.validate(one, version, strict=True)


def test_a_field_that_kubernetes_does_not_know_is_noticed() -> None:
    wrong = one_of(resources(base("edge")), "StatefulSet", "gateway")
    wrong["spec"]["template"]["spec"]["containers"][0]["readOnlyRoot"] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, OLDEST, strict=True)


@forms
def test_a_base_is_what_the_chart_makes_and_kustomize_takes_it(form: str) -> None:
    file = FOLDER / form / "gateway.yaml"
    assert file.read_text() == base(form), "run `make kubernetes`"

    def key(one: Resource) -> str:
        return json.dumps(one, sort_keys=True)

    assert sorted(map(key, built(file.parent))) == sorted(map(key, resources(file.read_text())))


@forms
def test_each_container_is_confined(form: str) -> None:
    for one in (one for one in resources(base(form)) if one["kind"] == "StatefulSet"):
        spec = one["spec"]["template"]["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"} & set(spec)
        assert not any("hostPath" in volume for volume in spec["volumes"])
        for container in containers(spec):
            walls = container["securityContext"]
            assert walls["runAsNonRoot"] is True
            assert walls["runAsUser"] > 0
            assert walls["runAsGroup"] > 0
            assert walls["readOnlyRootFilesystem"] is True
            assert walls["allowPrivilegeEscalation"] is False
            assert walls["privileged"] is False
            assert walls["capabilities"] == {"drop": ["ALL"]}
            profile = walls.get("seccompProfile", spec["securityContext"]["seccompProfile"])
            is_gateway = walls["runAsUser"] == GATEWAY
            assert profile["type"] == ("Localhost" if is_gateway else "RuntimeDefault")
            assert ("appArmorProfile" in walls) == is_gateway


@forms
def test_the_gateway_takes_its_settings_in_production_and_each_place_is_mounted(form: str) -> None:
    config = settings(form)
    broken = {str(finding.path[0]) for finding in broken_rules(config)}
    assert broken == {"operators"}, "gateway.toml names them, and all else is safe"
    mounts = {mount["mountPath"] for mount in named(pod(form), "gateway")["volumeMounts"]}
    places = [config.state_dir, config.listen_uds_path, config.listen_admin_uds_path, config.manifests_dir,
              config.policy_dir, config.lease_signing_key_path, config.secrets.file]  # fmt: skip
    if form == "edge":
        places += [config.store.redis_ca_file, config.store.redis_password_file, config.ledger.ca_file,
                   config.ledger.password_file]  # fmt: skip
    for place in map(str, places):
        assert any(place.startswith(f"{mount}/") or place == mount for mount in mounts), place
    assert list(config.identity.edge_uids) == ([EDGE] if form == "edge" else [])


@forms
def test_each_volume_is_one_of_the_chart_or_one_that_the_user_makes(form: str) -> None:
    found = resources(base(form))
    made = {kind: {one["metadata"]["name"] for one in found if one["kind"] == kind} for kind in MADE_BY_USERS}
    for one in (one for one in found if one["kind"] == "StatefulSet"):
        spec = one["spec"]["template"]["spec"]
        claims = {claim["metadata"]["name"] for claim in one["spec"]["volumeClaimTemplates"]}
        volumes = {volume["name"] for volume in spec["volumes"]} | claims
        used = {mount["name"] for container in containers(spec) for mount in container["volumeMounts"]}
        assert used == volumes
        for volume in spec["volumes"]:
            if "configMap" in volume:
                assert volume["configMap"]["name"] in made["ConfigMap"] | MADE_BY_USERS["ConfigMap"]
            if "secret" in volume:
                assert volume["secret"]["secretName"] in MADE_BY_USERS["Secret"]
                assert volume["secret"]["defaultMode"] == 0o440, "a private file, docs/configuration.md"


@pytest.mark.parametrize(("form", "name", "uid"), [("sidecar", "agent", AGENT), ("edge", "edge", EDGE)])
def test_agent_and_edge_reach_the_client_socket_alone_and_cannot_replace_it(form: str, name: str, uid: int) -> None:
    spec, config = pod(form), settings(form)
    container = named(spec, name)
    assert container["securityContext"]["runAsUser"] == uid
    shared = {mount["name"]: mount for mount in named(spec, "gateway")["volumeMounts"]}
    both = [mount for mount in container["volumeMounts"] if mount["name"] in shared]
    assert both == [{"name": "client", "mountPath": "/run/gateway/client", "readOnly": True}]
    assert config.listen_uds_path.startswith("/run/gateway/client/")
    assert not config.listen_admin_uds_path.startswith("/run/gateway/client/")


@forms
def test_the_doctor_looks_first_under_the_same_walls_and_the_gateway_starts_before_and_ends_after_the_rest(
    form: str,
) -> None:
    spec = pod(form)
    doctor, gateway = spec["initContainers"]
    assert doctor["args"] == ["doctor", "--config", "/etc/gateway/config/gateway.toml"]
    for part in ("securityContext", "env", "volumeMounts", "image"):
        assert doctor[part] == gateway[part], part
    assert gateway["restartPolicy"] == "Always", "so it is a sidecar"
    pause = named(spec, "edge")["lifecycle"]["preStop"]["sleep"]["seconds"] if form == "edge" else 0
    assert spec["terminationGracePeriodSeconds"] >= pause + 2 * LimitSettings().drain_seconds + 10


def test_probes_ask_the_gateway_itself() -> None:
    gateway, edge = named(pod("edge"), "gateway"), named(pod("edge"), "edge")
    for probe in ("startupProbe", "readinessProbe"):
        assert gateway[probe]["exec"]["command"][:2] == ["gateway", "status"]
    assert gateway["livenessProbe"]["exec"]["command"][:2] == ["gateway", "ps"], "which no dependency makes fail"
    assert edge["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "https", "scheme": "HTTPS"}
    assert edge["livenessProbe"]["httpGet"]["path"] == "/healthz"
    without = rendered(*FORMS["edge"], "--set", "edge.httpProbes=false")
    spec = one_of(resources(without), "StatefulSet", "gateway")["spec"]["template"]["spec"]
    assert named(spec, "edge")["readinessProbe"]["tcpSocket"] == {"port": "https"}


def test_the_edge_has_its_settings_and_others_make_another_pod() -> None:
    text = one_of(resources(base("edge")), "ConfigMap", "gateway-edge")["data"]["edge.toml"]
    config = tomllib.loads(text)
    assert config["client_socket"] == settings("edge").listen_uds_path
    assert config["public_base_url"] == settings("edge").public_base_url
    mounts = {mount["mountPath"] for mount in named(pod("edge"), "edge")["volumeMounts"]}
    for file in config["tls"].values():
        assert file.rpartition("/")[0] in mounts
    more = ("--set", "edge.tls=require_client_certificate = true", "--set", "edge.tables=[limits]\nbody_seconds = 5")
    changed = resources(rendered(*FORMS["edge"], *more))
    edge = tomllib.loads(one_of(changed, "ConfigMap", "gateway-edge")["data"]["edge.toml"])
    assert edge["tls"]["require_client_certificate"] is True
    assert edge["limits"] == {"body_seconds": 5}

    def mark(found: list[Resource]) -> Any:
        return one_of(found, "StatefulSet", "gateway")["spec"]["template"]["metadata"]["annotations"]

    assert mark(changed) != mark(resources(base("edge")))


def test_each_pod_takes_connections_from_those_alone_who_need_it() -> None:
    found = [one for one in resources(base("edge")) if one["kind"] == "NetworkPolicy"]
    ports = {}
    for one in found:
        assert one["spec"]["policyTypes"] == ["Ingress", "Egress"]
        component = one["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
        (rule,) = one["spec"]["ingress"]
        ports[component] = [port["port"] for port in rule["ports"]]
        if component != "gateway":
            (peer,) = rule["from"]
            assert peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "gateway"
            assert "egress" not in one["spec"]
    assert ports == {"gateway": [8443], "redis": [6379], "postgres": [5432]}
    (sidecar,) = [one for one in resources(base("sidecar")) if one["kind"] == "NetworkPolicy"]
    assert "ingress" not in sidecar["spec"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--set", "replicas=2"), "several gateways need a Redis and a PostgreSQL"),
        (("--set", "replicas=2", "--set", "redis.deploy=true"), "several gateways need a Redis and a PostgreSQL"),
        (("--set", "form=deployment"), "form: is neither sidecar nor edge"),
    ],
)
def test_values_that_make_no_whole_gateway_are_refused(arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as raised:
        rendered(*arguments)
    assert said in raised.value.stderr


def test_a_redis_and_a_postgresql_of_the_user_take_the_place_of_those_of_the_chart() -> None:
    urls = {"redis": "rediss://gate@redis.example", "postgres": "postgresql://gateway@postgres.example/ledger"}
    arguments = [part for name, url in urls.items() for part in ("--set", f"{name}.deploy=false,{name}.url={url}")]
    found = resources(rendered(*FORMS["edge"], *arguments, name="blue"))
    assert [one["metadata"]["name"] for one in found if one["kind"] == "StatefulSet"] == ["blue"]
    gateway = named(one_of(found, "StatefulSet", "blue")["spec"]["template"]["spec"], "gateway")
    assert values(gateway)["GATEWAY__STORE__REDIS_URL"] == urls["redis"]
    assert values(gateway)["GATEWAY__LEDGER__URL"] == urls["postgres"]


def test_the_kustomization_of_the_document_sets_images_and_url(tmp_path: Path) -> None:
    text = (REPOSITORY / "docs" / "kubernetes.md").read_text().partition("With kustomize,")[2]
    shutil.copytree(FOLDER / "sidecar", tmp_path / "sidecar")
    (tmp_path / "ours").mkdir()
    ours = text.partition("```yaml\n")[2].partition("```")[0].replace("sha256:…", f"sha256:{'0' * 64}")
    (tmp_path / "ours" / "kustomization.yaml").write_text(ours)
    pods = one_of(built(tmp_path / "ours"), "StatefulSet", "gateway")
    kubernetes_validate.validate(pods, OLDEST, strict=True)
    assert pods["metadata"]["namespace"] == "gateway"
    spec = pods["spec"]["template"]["spec"]
    for name in ("doctor", "gateway"):
        container = named(spec, name)
        assert values(container) == values(named(pod("sidecar"), name)) | {
            "GATEWAY__PUBLIC_BASE_URL": "https://gate.corp.example"
        }
        assert container["image"].startswith("registry.example/action-gateway@sha256:")
    assert named(spec, "agent")["image"].startswith("registry.example/billing-agent@sha256:")


def test_the_container_for_operators_of_the_document_reaches_the_admin_socket_alone(tmp_path: Path) -> None:
    text = (REPOSITORY / "docs" / "kubernetes.md").read_text().partition("## Operators")[2]
    shutil.copytree(FOLDER / "edge", tmp_path / "edge")
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "kustomization.yaml").write_text(text.partition("```yaml\n")[2].partition("```")[0])
    pods = one_of(built(tmp_path / "ours"), "StatefulSet", "gateway")
    kubernetes_validate.validate(pods, OLDEST, strict=True)
    spec = pods["spec"]["template"]["spec"]
    operator, gateway = named(spec, "operator"), named(spec, "gateway")
    (mount,) = operator["volumeMounts"]
    assert settings("edge").listen_admin_uds_path.startswith(f"{mount['mountPath']}/")
    assert {**mount, "readOnly": True} == mount
    for wall, value in operator["securityContext"].items():
        assert gateway["securityContext"][wall] == value, wall
