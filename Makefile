# `make` alone prints the targets. GNU make 3.81, as macOS has it, is enough.

.DEFAULT_GOAL := help
SHELL := /bin/bash

# Where `run-server` keeps its data.
ENGINES_DIR ?= .engines
# Handed to the server or to the test runner: make test ARGS=badges
ARGS ?=

TARGET_DIR := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)

CLIENTS_BIN := $(abspath $(or $(HEADMARK_BIN),$(TARGET_DIR)/debug/headmark))

# For the two below: make check-log LOG=log.csv.gz; make replay-feed FOLLOWS=follows.csv.gz LOG=log.csv.gz
LOG ?=
FOLLOWS ?=

.PHONY: help release check-alerts check-proxy check-upgrade lint-deploy lint-program lint-dependencies lint-scripts lint-others run run-server demo check-log replay-feed bench chaos test test-distributed test-clients test-console lint lint-clients lint-console audit fuzz-api openapi docs clean-engines

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: ## the embedded tier: SQLite in ./headmark-data, nothing else to install
	cargo run --release -- $(ARGS)

run-server: ## the server tier, on a private Postgres and Redis that keep their data in .engines
	scripts/engines.sh run "$(ENGINES_DIR)" -- cargo run --release -- $(ARGS)

demo: ## replay a real log of private messages as badges, and check every number
	cargo build --release --bin headmark --example demo
	"$(TARGET_DIR)/release/examples/demo" --server "$(TARGET_DIR)/release/headmark" $(ARGS)

check-log: ## import a chat log (LOG=) twice on both tiers, and compare every number with a count over the files (ARGS='--joins --coarse 60': with joins and leaves, to the minute)
	cargo build --release --bin headmark
	scripts/check_log.py $(ARGS) "$(TARGET_DIR)/release/headmark" "$(LOG)"
	scripts/engines.sh with -- scripts/check_log.py --engines $(ARGS) "$(TARGET_DIR)/release/headmark" "$(LOG)"

replay-feed: ## replay follows and messages as posts (FOLLOWS=, LOG=) on both tiers, and compare every feed with a count over the files
	cargo build --release --bin headmark
	scripts/replay_feed.py "$(TARGET_DIR)/release/headmark" "$(FOLLOWS)" "$(LOG)" $(ARGS)
	scripts/engines.sh with -- scripts/replay_feed.py --engines "$(TARGET_DIR)/release/headmark" "$(FOLLOWS)" "$(LOG)" $(ARGS)

bench: ## every speed beside what it is compared with; writes docs/benchmarks.md (ARGS=--quick: a few minutes, writes nothing)
	cargo build --profile dist --bin headmark --example bench
	scripts/engines.sh with --durable -- "$(TARGET_DIR)/dist/examples/bench" \
		--server "$(TARGET_DIR)/dist/headmark" $(ARGS)

chaos: ## break nodes and stores under load and check every promise, on both tiers (ARGS="--tier server --seconds 60 --soak-seconds 0 --seed 7")
	scripts/engines.sh with -- cargo test --release --test chaos -- $(ARGS)

test: ## every test, on both tiers, with the clients and the console; the last line of output counts them (ARGS: a filter for the program's own)
	@scripts/engines.sh with --pooler -- scripts/test.sh $(ARGS)

test-distributed: ## the promises on a Citus that is there: TEST_DATABASE_URL=postgres://…/test_headmark make test-distributed, whose rows it deletes (ARGS: another filter)
	@scripts/engines.sh with -- scripts/test-distributed.sh $(ARGS)

test-clients: clients/python/.venv ## the clients: their own tests, then against the server behind a faulty proxy, on both tiers (needs Node 20.19, Python 3.10, psql; HEADMARK_BIN= a binary that is built)
	cd clients/typescript && npm ci && npm test && npm run build
	cd clients/python && .venv/bin/python -m pytest
	$(if $(HEADMARK_BIN),,cargo build --locked --bin headmark)
	cd clients/typescript && HEADMARK_BIN="$(CLIENTS_BIN)" ../../scripts/engines.sh with -- npm run test:server
	cd clients/python && HEADMARK_BIN="$(CLIENTS_BIN)" ../../scripts/engines.sh with -- .venv/bin/python -m pytest tests_server -n 4

test-console: ## the console in a real Chromium, on both tiers (needs Node 20.19, Chromium or CHROMIUM=, psql; HEADMARK_BIN= a binary that is built; SCREENSHOTS=1: writes the pictures of the docs)
	cd console && npm ci
	$(if $(HEADMARK_BIN),,cargo build --locked --bin headmark)
	cd console && HEADMARK_BIN="$(CLIENTS_BIN)" ../scripts/engines.sh with -- npm test

lint-clients: clients/python/.venv ## formatting, rules and types of the clients (needs Node 20.19 and Python 3.10)
	cd clients/typescript && npm ci && npm run lint
	cd clients/python && .venv/bin/ruff format --check . ../../examples/push && .venv/bin/ruff check . ../../examples/push && .venv/bin/mypy

# Made again when a pinned version changes.
clients/python/.venv: clients/python/requirements.txt
	python3 -m venv --clear $@
	$@/bin/pip install --quiet --require-hashes --requirement $< || { rm -r $@; exit 1; }
	touch $@

lint-console: ## formatting, rules and types of the console (needs Node 20.19)
	cd console && npm ci && npm run lint

lint: ## formatting, clippy, licences, sources and (where their database can be reached) known vulnerabilities of the dependencies; the clients and the console too
	cargo fmt --check
	@scripts/beside.sh '$(MAKE) --no-print-directory lint-dependencies lint-scripts lint-others' $(MAKE) --no-print-directory lint-program

lint-program:
	cargo clippy --locked --all-targets --features failpoints -- -D warnings
	cargo clippy --locked --test chaos --features failpoints -- -D warnings

lint-dependencies:
	@cargo deny --version >/dev/null 2>&1 || cargo install --locked cargo-deny
	cargo deny --log-level error check bans licenses sources
	@if cargo deny fetch db >/dev/null 2>&1; then cargo deny --log-level error check advisories; \
		else echo "lint: the database of advisories cannot be reached, so they are not checked; make audit does" >&2; fi

lint-scripts:
	@if command -v shellcheck >/dev/null; then shellcheck scripts/*.sh deploy/debian/post* .ci/run; fi

lint-others:
	scripts/client-tools.sh $(MAKE) --no-print-directory lint-clients lint-console
	@$(MAKE) --no-print-directory lint-deploy

lint-deploy: ## the rules of the alerts, the Helm chart, the manifests, and where they are installed the unit and the proxy (needs Python with venv, promtool)
	scripts/lint-deploy.sh

check-alerts: ## make the cause of each alert on real nodes, until a real Prometheus fires and resolves it; a quarter of an hour (ARGS: some alerts)
	cargo build --locked --features failpoints --bin headmark
	scripts/engines.sh with -- scripts/check_alerts.py "$(TARGET_DIR)/debug/headmark" $(ARGS)

check-proxy: ## HAProxy with deploy/haproxy in front of two nodes: held polls, stops and kills under load; three minutes (needs HAProxy 2.6)
	cargo build --locked --bin headmark
	scripts/engines.sh with -- scripts/check_proxy.py "$(TARGET_DIR)/debug/headmark"

check-upgrade: ## nodes of an older version (FROM: a tag or a commit) are replaced by this one under load; on both tiers
	@test -n "$(FROM)" || { echo "name the older version: make check-upgrade FROM=v0.1.0"; exit 2; }
	cargo build --locked --bin headmark
	scripts/engines.sh with -- scripts/check_upgrade.py "$(TARGET_DIR)/debug/headmark" "$(FROM)"

audit: ## known vulnerabilities of the dependencies (needs the network)
	@cargo deny --version >/dev/null 2>&1 || cargo install --locked cargo-deny
	cargo deny check advisories

fuzz-api: ## requests made out of the OpenAPI document, on both tiers; fails on findings (needs Python with venv, curl; SEED=, EXAMPLES=, TIERS=)
	@SEED="$(SEED)" EXAMPLES="$(EXAMPLES)" TIERS="$(TIERS)" scripts/fuzz-api.sh

openapi: ## write openapi/openapi.json again
	@mkdir -p openapi
	cargo run --quiet -- openapi > openapi/openapi.json.new
	@mv openapi/openapi.json.new openapi/openapi.json

docs: ## write the generated pages, check names and links, and build the site in target/book
	WRITE_DOCS=1 cargo test --quiet --test suite docs::generated
	cargo test --quiet --test suite docs::
	@mdbook --version >/dev/null 2>&1 || cargo install --locked mdbook
	mdbook build

release: ## the files of a release from this commit, with checksums, in target/release-VERSION (ARGS=--snapshot: of what is not released)
	scripts/release.sh $(ARGS)

clean-engines: ## remove the data of run-server
	scripts/engines.sh remove "$(ENGINES_DIR)"
