#!/usr/bin/env bash
# Runs two commands at once, as one of them leaves a core idle for long. The output of the first one is shown after that
# of the second. Fails where one of them fails.
#
#   scripts/beside.sh 'FIRST COMMAND' SECOND COMMAND…
set -euo pipefail

output=$(mktemp)
# Only while it runs: later its number may be another's.
first=
trap 'if [ -n "$first" ]; then kill -- "-$first" 2>/dev/null || true; fi; rm -f "$output"' EXIT
trap 'exit 1' INT TERM HUP

# In a process group of its own, which is ended with all that it started.
set -m
bash -c "$1" >"$output" 2>&1 </dev/null &
first=$!
set +m
shift

status=0
"$@" || status=$?
wait "$first" || status=$?
first=
cat "$output"
exit "$status"
