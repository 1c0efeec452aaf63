#!/usr/bin/env bash
# The tests of the server tier on a Citus that is there already, one after the other, as all use its one database. `make
# test-distributed` calls this inside `scripts/engines.sh with`, which has the Redis that they need. TEST_DATABASE_URL
# names the database on the coordinator; the server does not read that variable. `test` must be a word of its name, as in
# `test_headmark`, for it is migrated, and its rows are deleted before each test. Arguments replace the filter.
set -euo pipefail
cd "$(dirname "$0")/.."

url=${TEST_DATABASE_URL:-} name=''
if [[ $url =~ ^postgres(ql)?://[^/?#]*/([A-Za-z0-9_]+)([?][^#]*)?$ ]]; then name=${BASH_REMATCH[2]}; fi
# The query can name another one.
if ! [[ $name =~ (^|_)test(_|$) ]] || [[ $url = *[?\&]dbname=* ]]; then
    echo "name a database that has the word test in its name, as its rows are deleted:" >&2
    echo "TEST_DATABASE_URL=postgres://user:password@coordinator/test_headmark make test-distributed" >&2
    exit 2
fi

cargo nextest --version >/dev/null 2>&1 || cargo install --locked --no-default-features --features default-no-update cargo-nextest
cargo build --locked --features failpoints --bin headmark
DATABASE_URL="$url" "${CARGO_TARGET_DIR:-target}/debug/headmark" migrate --distribute

# Left out are tests of an engine of their own, of databases without tables or of an earlier version, and of what only plain
# Postgres has: partitions, plans, locks that the catalog of one database shows, triggers that slow or refuse a write. Those of
# secrecy count statements, of which a request sends one for each shard that its users are in. Ten thousand who follow one user
# at once are more than transactions of two phases take in time: some are refused with 503. A test that compares two
# databases has one here.
filter='test(/::server$/) - test(/guarantees::(plans|partitions|migrations|user_marks)/) - test(/upgrade|earlier_version/)
    - test(relations::secrecy) - test(/a_slow_database_gets_smaller_batches|a_poisonous_write_fails_alone|a_star_gains_ten_thousand/)
    - test(nothing_names_an_erased_user)'
[ $# = 0 ] || filter=$*
HEADMARK_TEST_DISTRIBUTED="$url" \
    cargo nextest run --features failpoints --test suite --test-threads 1 --no-fail-fast -E "$filter"
