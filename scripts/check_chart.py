#!/usr/bin/env python3
"""Checks the Helm chart: by default it renders what deploy/kubernetes/base has, its values do what they say, and it
refuses unknown values. Also checks the Job of the page about backups. `scripts/lint-deploy.sh` runs it, with the
Python and the programs of its own folder:

    check_chart.py HELM KUBERNETES_VALIDATE
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

DEPLOY = pathlib.Path(__file__).resolve().parent.parent / "deploy"
CHART = DEPLOY / "helm/headmark"
NAME = "app.kubernetes.io/name"
HELM, VALIDATE = sys.argv[1:3]


def render(values, release="headmark"):
    """The objects by kind; None where the chart refuses the values."""
    with tempfile.TemporaryDirectory() as folder:
        file, rendered = pathlib.Path(folder, "values.yaml"), pathlib.Path(folder, "rendered.yaml")
        file.write_text(yaml.safe_dump(values))
        done = subprocess.run([HELM, "template", release, CHART, "--values", file], check=False, capture_output=True, text=True)
        if done.returncode:
            return None
        rendered.write_text(done.stdout)
        subprocess.run([VALIDATE, "--strict", rendered], check=True, stdout=subprocess.DEVNULL)
        return by_kind(yaml.safe_load_all(done.stdout))


def by_kind(objects):
    found = {}
    for item in objects:
        assert item["kind"] not in found, f"two of {item['kind']}"
        found[item["kind"]] = item
    return found


def plain(value):
    """Without what Helm adds (labels, a pull policy), with settings in one order and without the image's registry."""
    if isinstance(value, list):
        items = [plain(item) for item in value]
        is_env = bool(items) and all(isinstance(item, dict) and set(item) == {"name", "value"} for item in items)
        return sorted(items, key=lambda item: item["name"]) if is_env else items
    if not isinstance(value, dict):
        return value
    value = {key: plain(item) for key, item in value.items() if key != "imagePullPolicy"}
    if NAME in value:
        return {NAME: value[NAME]}
    if "image" in value:
        value["image"] = value["image"].rsplit("/", 1)[-1].split(":")[0]
    return value


def held_polls(autoscaler):
    """The held polls of a pod that it aims at."""
    metrics = {metric["pods"]["metric"]["name"]: metric["pods"]["target"] for metric in autoscaler["spec"]["metrics"]}
    return int(metrics["headmark_polls_waiting"]["averageValue"])


def check_held_polls(base):
    """The autoscalers aim at 70 % of the polls that a node may hold."""
    limits = (DEPLOY.parent / "docs/reference/limits.md").read_text()
    bound = int(re.search(r"\| waiting polls \| ([0-9,]+) \|", limits)[1].replace(",", ""))
    assert held_polls(base["HorizontalPodAutoscaler"]) == bound * 7 // 10, "the base has another bound than a node"

    example = DEPLOY / "kubernetes/example"
    env = yaml.safe_load((example / "settings.yaml").read_text())["spec"]["template"]["spec"]["containers"][0]["env"]
    bound = next(int(item["value"]) for item in env if item["name"] == "HEADMARK_WAITING_POLLS")
    patches = yaml.safe_load((example / "kustomization.yaml").read_text())["patches"]
    patch = next(yaml.safe_load(patch["patch"]) for patch in patches if patch.get("target", {}).get("kind") == "HorizontalPodAutoscaler")
    place = next(at for at, metric in enumerate(base["HorizontalPodAutoscaler"]["spec"]["metrics"])
                 if metric["pods"]["metric"]["name"] == "headmark_polls_waiting")
    wanted = [{"op": "replace", "path": f"/spec/metrics/{place}/pods/target/averageValue", "value": str(bound * 7 // 10)}]
    assert patch == wanted, f"the example patches its autoscaler with {patch}, and its settings want {wanted}"

    for values, wanted in (
        ({"settings": {"HEADMARK_WAITING_POLLS": 10_000_000}}, 7_000_000),
        ({"settings": {"HEADMARK_WAITING_POLLS": "20000"}}, 14_000),
        ({"settings": {"HEADMARK_WAITING_POLLS": 20000}, "autoscaling": {"heldPolls": 1000}}, 1000),
        # A target of 0 would be refused.
        ({"settings": {"HEADMARK_WAITING_POLLS": 0}}, 1),
        ({"settings": {"HEADMARK_WAITING_POLLS": ""}}, 3500),
        ({"settings": {"HEADMARK_WAITING_POLLS": None}}, 3500),
    ):
        assert held_polls(render(values)["HorizontalPodAutoscaler"]) == wanted, f"with {values} it must aim at {wanted}"


def check_grace():
    """A pod has time for its drain, whatever the settings are."""
    for settings, wanted in (
        ({}, 60),
        ({"HEADMARK_DRAIN_DELAY_MS": 20000}, 70),
        ({"HEADMARK_DRAIN_DELAY_MS": "20500", "HEADMARK_DRAIN_TIMEOUT_MS": 60000}, 106),
        ({"HEADMARK_DRAIN_TIMEOUT_MS": 10_000_000}, 10035),
        ({"HEADMARK_DRAIN_DELAY_MS": 0}, 50),
        ({"HEADMARK_DRAIN_DELAY_MS": "0", "HEADMARK_DRAIN_TIMEOUT_MS": 0}, 25),
        # A variable that is empty is as good as unset: the delay is that of a node then.
        ({"HEADMARK_DRAIN_DELAY_MS": "", "HEADMARK_DRAIN_TIMEOUT_MS": ""}, 50),
        ({"HEADMARK_DRAIN_DELAY_MS": None}, 60),
    ):
        grace = render({"settings": settings})["Deployment"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        assert grace == wanted, f"with {settings} a pod gets {grace} s to stop, not {wanted}"


def check_settings():
    """A value that is 0, false or empty comes before a default, and a null does not."""
    settings = {"HEADMARK_DRAIN_DELAY_MS": 0, "HEADMARK_LOG_FORMAT": "", "HEADMARK_COMPRESSION": False, "REDIS_URL_FILE": None,
                "HEADMARK_LISTEN": None}
    wanted = {"HEADMARK_DRAIN_DELAY_MS": "0", "HEADMARK_LOG_FORMAT": "", "HEADMARK_COMPRESSION": "false"}
    pod = render({"settings": settings})["Deployment"]["spec"]["template"]["spec"]
    for container in pod["initContainers"] + pod["containers"]:
        values = {item["name"]: item["value"] for item in container["env"]}
        assert {name: values.get(name) for name in wanted} == wanted, f"with {settings} {container['name']} gets {values}"
        assert values["DATABASE_URL_FILE"] == "/run/secrets/headmark/database-url", values
    assert values["REDIS_URL_FILE"] == "/run/secrets/headmark/redis-url", values
    # As where all settings of the file are commented out.
    assert render({"settings": None}) == render({}), "no settings are not the defaults"


def check_job(base):
    """The Job that renews the epoch is valid, and may do as much as the nodes, so that the same cluster takes it."""
    page = (DEPLOY.parent / "docs/operations/backup.md").read_text()
    text = next(text for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "kind: Job" in text)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "job.yaml")
        file.write_text(text)
        subprocess.run([VALIDATE, "--strict", file], check=True, stdout=subprocess.DEVNULL)
    job = yaml.safe_load(text)["spec"]["template"]["spec"]
    node = base["Deployment"]["spec"]["template"]["spec"]
    waits = dict(re.findall(r"\nkubectl wait --for=(\S+) .*--timeout=(\S+)\n", page))
    assert waits.get("condition=complete") == "5m", f"the page does not wait for the Job: {waits}"
    assert int(waits.get("delete", "0s")[:-1]) > node["terminationGracePeriodSeconds"], f"nodes may outlive the wait: {waits}"
    for labels in re.findall(r"--for=delete pod --selector (\S+)", page):
        assert dict([labels.split("=")]) == base["Deployment"]["spec"]["selector"]["matchLabels"], f"{labels} selects no node"
    migration = node["initContainers"][0]
    as_node = {key: value for key, value in node["securityContext"].items() if key != "fsGroupChangePolicy"}
    for found, wanted in (
        (job["securityContext"], as_node),
        (job["containers"][0].get("securityContext"), migration["securityContext"]),
        (job["containers"][0]["env"], migration["env"]),
        (job["containers"][0]["volumeMounts"], migration["volumeMounts"]),
        (job["volumes"][0]["secret"]["defaultMode"], node["volumes"][0]["secret"]["defaultMode"]),
        (job.get("automountServiceAccountToken"), node["automountServiceAccountToken"]),
    ):
        assert found == wanted, f"the Job that renews the epoch has {found}, and the nodes have {wanted}"


def main():
    base = by_kind(yaml.safe_load((DEPLOY / "kubernetes/base" / file).read_text()) for file in
                   yaml.safe_load((DEPLOY / "kubernetes/base/kustomization.yaml").read_text())["resources"])
    rendered = render({})
    assert set(rendered) == set(base), f"the chart renders {sorted(rendered)}, the base has {sorted(base)}"
    for kind, item in base.items():
        assert plain(rendered[kind]) == plain(item), f"{kind} is {plain(rendered[kind])} in the chart and {plain(item)} in the base"

    check_held_polls(base)
    check_grace()
    check_settings()
    check_job(base)

    example = yaml.safe_load((DEPLOY / "kubernetes/example/ingress.yaml").read_text())
    ingress = render({"ingress": {"enabled": True}})["Ingress"]
    assert plain(ingress["spec"]) == plain(example["spec"]) and ingress["metadata"]["annotations"] == example["metadata"]["annotations"]

    settings = {"HEADMARK_WAITING_POLLS": 10_000_000, "HEADMARK_DRAIN_DELAY_MS": 20000, "HEADMARK_COMPRESSION": True, "DATABASE_URL_FILE": "/elsewhere"}
    deployment = render({"settings": settings, "autoscaling": {"enabled": False}, "replicas": 3, "secretName": "keys"}, "web")
    assert "HorizontalPodAutoscaler" not in deployment
    deployment = deployment["Deployment"]
    assert deployment["metadata"]["name"] == "web-headmark" and deployment["spec"]["replicas"] == 3
    pod = deployment["spec"]["template"]["spec"]
    assert pod["volumes"][0]["secret"]["secretName"] == "keys"
    for container in pod["initContainers"] + pod["containers"]:
        env = container["env"]
        values = {item["name"]: item["value"] for item in env}
        assert len(values) == len(env), "a setting is there twice"
        assert [values[name] for name in settings] == ["10000000", "20000", "true", "/elsewhere"], values

    for wrong in ({"setting": {}}, {"settings": {"headmark": "x"}}, {"replicas": 0}, {"image": {"repositry": "x"}}, {"autoscaling": {"minReplicas": "two"}},
                  {"settings": {"HEADMARK_LISTEN": "0.0.0.0:9090"}}, {"settings": {"HEADMARK_ADMIN_LISTEN": "0.0.0.0:9090"}}):
        assert render(wrong) is None, f"the chart must refuse {wrong}"

    version = yaml.safe_load((CHART / "Chart.yaml").read_text())
    cargo = next(line for line in (DEPLOY.parent / "Cargo.toml").read_text().splitlines() if line.startswith("version"))
    assert version["version"] == version["appVersion"] == cargo.split('"')[1], "the chart has another version than the program"


main()
