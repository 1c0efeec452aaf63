#!/usr/bin/env bash
# Runs every test, those of the program with the failpoints built in. Arguments go to the runner of these, and leave out the
# clients and the console. `make test` calls this inside `scripts/engines.sh with --pooler`. The last line is `N passed, N
# failed`, taken from the summaries of the runners. A run without a single test fails.
set -euo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0

# The tests hold many connections at once; some systems start a shell with 256 files.
ulimit -Sn 8192 2>/dev/null || true

# Shows and keeps the output of what follows.
keep_output() { "$@" 2>&1 | tee -a "$log" || status=$?; }

# Each test runs in a process of its own, which some of them need; so no other runner will do.
cargo nextest --version >/dev/null 2>&1 || cargo install --locked --no-default-features --features default-no-update cargo-nextest
keep_output cargo nextest run --features failpoints "$@"

# A filter is for the tests of the program.
if [ $# = 0 ]; then
    make=(make --no-print-directory "HEADMARK_BIN=${CARGO_TARGET_DIR:-target}/debug/headmark")
    # Side by side, as each of the two waits for most of the time.
    keep_output scripts/client-tools.sh scripts/beside.sh "$(printf '%q ' "${make[@]}" test-clients)" "${make[@]}" test-console
fi

# nextest:    Summary [   1.2s] 5/9 tests run: 3 passed (1 slow), 1 failed, 1 timed out, 2 skipped
# vitest:          Tests  1 failed | 8 passed (9)
# pytest:     ==== 1 failed, 8 passed, 2 errors in 1.23s ====
read -r passed failed < <(sed $'s/\033\\[[0-9;]*m//g' "$log" | awk '
    /^ *Summary \[.*\] .* tests? run: / {
        sub(/^ *Summary \[[^]]*\] */, "")
        run = $1
        sub(/\/.*/, "", run)
        sub(/.*run: /, "")
        passed += $1
        failed += run - $1
    }
    /^ *Tests +[0-9]/ || /^=* ?[0-9].* in [0-9.]+s( \(.*\))?( =*)?$/ {
        for (i = 2; i <= NF; i++) {
            if ($i ~ /^passed/) passed += $(i - 1)
            if ($i ~ /^(failed|errors?)/) failed += $(i - 1)
        }
    }
    END { print passed + 0, failed + 0 }
')
if [ "$status" = 0 ] && [ "$failed" != 0 ]; then status=1; fi
if [ "$status" = 0 ] && [ "$passed" = 0 ]; then
    echo "no test ran"
    status=1
fi
echo "$passed passed, $failed failed"
exit "$status"
