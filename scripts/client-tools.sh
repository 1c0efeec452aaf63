#!/usr/bin/env bash
# Runs a command with what the clients and the console need for their tests: Node, Python with venv, and Chromium. On Debian
# and Ubuntu it installs what is missing. Elsewhere it says what to install.
#
#   scripts/client-tools.sh COMMAND…
#
# Sets CHROMIUM, the path of the browser. Where the system's Node is too old, a newer one comes from npm into target/node.
set -euo pipefail
cd "$(dirname "$0")/.."

NODE_MIN=20.19.0
# What npm installs where the system's is older.
NODE_PINNED=20.20.2
PYTHON_MIN=3.10

say() { printf 'client tools: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# Whether version $1 is at least $2.
at_least() { [ "$(printf '%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

has_node() { command -v node >/dev/null && at_least "$(node --version | tr -d v)" "$NODE_MIN"; }

has_python() {
    command -v python3 >/dev/null && python3 -c 'import ensurepip, venv' 2>/dev/null &&
        at_least "$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')" "$PYTHON_MIN"
}

# Sets CHROMIUM.
find_chromium() {
    local candidate
    for candidate in "${CHROMIUM:-}" chromium chromium-browser google-chrome \
        '/Applications/Chromium.app/Contents/MacOS/Chromium' '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'; do
        if [ -n "$candidate" ] && CHROMIUM=$(command -v "$candidate"); then
            export CHROMIUM
            return
        fi
    done
    return 1
}

install_packages() {
    local as_root=()
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || die "installing needs root or sudo"
        as_root=(sudo)
    fi
    say "installing $*"
    "${as_root[@]}" apt-get update -qq || say "apt-get update failed; going on with the lists at hand"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
}

install_missing() {
    local packages=()
    command -v npm >/dev/null || packages+=(nodejs npm)
    has_python || packages+=(python3 python3-venv)
    find_chromium || packages+=(chromium)
    [ "${#packages[@]}" = 0 ] || install_packages "${packages[@]}"
}

# A Node of our own, from npm.
use_pinned_node() {
    local folder=${CARGO_TARGET_DIR:-target}/node
    if [ ! -x "$folder/node_modules/node/bin/node" ]; then
        say "this system's Node is older than $NODE_MIN; getting $NODE_PINNED from npm"
        mkdir -p "$folder"
        npm install --no-save --no-package-lock --no-fund --no-audit --silent --prefix "$folder" "node@$NODE_PINNED" >&2
    fi
    PATH=$(cd "$folder/node_modules/node/bin" && pwd):$PATH
    export PATH
}

if ! { has_node && has_python && find_chromium; }; then
    if command -v apt-get >/dev/null; then
        install_missing
        has_node || use_pinned_node
    fi
    has_node || die "install Node $NODE_MIN or newer; with Homebrew: brew install node"
    has_python || die "install Python $PYTHON_MIN or newer with venv; with Homebrew: brew install python"
    find_chromium || die "install Chromium or Chrome; with Homebrew: brew install --cask chromium; or set CHROMIUM to its path"
fi
exec "$@"
