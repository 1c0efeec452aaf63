#!/usr/bin/env bash
# Asks schemathesis to disprove openapi/openapi.json: it makes requests out of the document that a fresh server serves, valid and
# invalid ones, one by one and in sequences, and compares the answers with the document. Both tiers, one after the other.
# Fails on any finding, on an error in the server's log, and when the server does not stop as it should.
#
#   SEED=7 EXAMPLES=300 TIERS=embedded make fuzz-api
#
# SEED      the same requests again (it is printed; without one another each time)
# EXAMPLES  how many requests each operation and phase is tried with
# TIERS     embedded, server, or both
# BIN       the server to test, instead of a build of this tree
#
# What the document cannot say, scripts/fuzz_api.py tells it. The reports stay in the folder that is printed at the end.
set -euo pipefail
cd "$(dirname "$0")/.."

# The one place that names the version.
SCHEMATHESIS=schemathesis==4.32.5

target=${CARGO_TARGET_DIR:-target}
venv=$target/fuzz-api/venv
seed=${SEED:-$((RANDOM * 32768 + RANDOM))}
examples=${EXAMPLES:-150}
key=fuzz-api-service-key

say() { printf 'fuzz-api: %s\n' "$*" >&2; }
die() {
    say "$@"
    exit 1
}

# shellcheck source=scripts/forget_settings.sh
. scripts/forget_settings.sh
# shellcheck source=scripts/make_venv.sh
. scripts/make_venv.sh

# ---- one tier; for the server tier engines.sh calls this script again, with the engines there ---------------------------------

# The server that runs, if one does.
server=''

await_base() {
    local tries base
    for ((tries = 0; tries < 300; tries++)); do
        base=$(sed -n 's/^.* is listening on \(http:[^ ]*\)$/\1/p' "$1/stdout")
        if [ -n "$base" ]; then
            printf '%s\n' "$base"
            return
        fi
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    cat "$1/stderr" >&2
    return 1
}

# Nothing may have gone wrong inside, whatever the caller was told.
check_log() {
    local panics=0
    panics=$(awk '$1 == "headmark_http_panics_total" { print $2 }' "$1/metrics")
    if [ "${panics:-0}" != 0 ] || grep -E '"level":"ERROR"|panicked at' "$1/stderr" >&2; then
        say "the server met errors: see $1/stderr"
        return 1
    fi
}

run_tier() {
    local tier=$1 dir=$2 status=0 base
    rm -rf "$dir"
    mkdir -p "$dir"
    trap '[ -z "$server" ] || kill -KILL "$server" 2>/dev/null || true' EXIT
    # In its own folder, where no headmark.toml is. No rate limit: it is for callers who ask this often.
    (
        cd "$dir"
        exec env HEADMARK_LISTEN=127.0.0.1:0 HEADMARK_DATA_DIR="$dir/data" HEADMARK_SERVICE_KEYS="fuzz:$key" \
            HEADMARK_RATE_LIMIT=0 HEADMARK_LOG=warn HEADMARK_LOG_FORMAT=json "$bin" serve
    ) >"$dir/stdout" 2>"$dir/stderr" &
    server=$!
    base=$(await_base "$dir")
    say "$tier: seed $seed, $examples examples, $base"
    # Its own folder, since it leaves files where it runs.
    (
        cd "$dir"
        SCHEMATHESIS_HOOKS=fuzz_api PYTHONPATH=$scripts PYTHONDONTWRITEBYTECODE=1 \
            "$venv/bin/schemathesis" run "$base/openapi.json" --header "Authorization: Bearer $key" \
            --checks all --max-examples "$examples" --seed "$seed" --continue-on-failure \
            --generation-database none --request-timeout 30 --no-color
    ) || status=1
    curl -fsS "$base/metrics" >"$dir/metrics" || status=1
    check_log "$dir" || status=1
    kill -TERM "$server"
    wait "$server" || {
        say "the server did not stop as it should"
        status=1
    }
    server=''
    if [ "$status" != 0 ]; then say "$tier: there are findings; SEED=$seed repeats them, $dir has the server's log"; fi
    return "$status"
}

# ---- both ---------------------------------------------------------------------------------------------------------------------

install_schemathesis() {
    if [ "$(cat "$venv/version" 2>/dev/null)" = "$SCHEMATHESIS" ]; then return; fi
    say "installing $SCHEMATHESIS into $venv"
    make_venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "$SCHEMATHESIS"
    printf '%s\n' "$SCHEMATHESIS" >"$venv/version"
}

scripts=$PWD/scripts
mkdir -p "$target"
target=$(cd "$target" && pwd)
venv=$target/fuzz-api/venv
if [ "${1:-}" = --server-tier ]; then
    bin=$BIN postgres=$HEADMARK_TEST_POSTGRES redis=$HEADMARK_TEST_REDIS
    # shellcheck disable=SC2119 # nothing stays
    forget_settings
    export DATABASE_URL=$postgres REDIS_URL=$redis
    run_tier server "$target/fuzz-api/server"
    exit
fi

if [ -z "${BIN:-}" ]; then
    cargo build --locked --bin headmark
    BIN=$target/debug/headmark
fi
case $BIN in /*) ;; *) BIN=$PWD/$BIN ;; esac
export BIN SEED=$seed EXAMPLES=$examples
bin=$BIN
install_schemathesis

status=0
for tier in ${TIERS:-embedded server}; do
    # shellcheck disable=SC2119 # nothing stays
    case $tier in
        embedded) (forget_settings && run_tier embedded "$target/fuzz-api/embedded") || status=1 ;;
        server) scripts/engines.sh with -- scripts/fuzz-api.sh --server-tier || status=1 ;;
        *)
            say "there is no tier '$tier'"
            exit 2
            ;;
    esac
done
if [ "$status" = 0 ]; then say "no findings (seed $seed)"; else say "there are findings (seed $seed)"; fi
exit "$status"
