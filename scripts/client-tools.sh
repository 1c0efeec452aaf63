#!/usr/bin/env bash
# Runs a command with what the clients and the console need for their tests: Node, Python with venv, and Chromium. On Debian
# and Ubuntu it installs what is missing, but no Chromium on Ubuntu, which has it as a snap only. What it does not install, it
# says how to get.
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

# Whether program $1 is a snap, or Ubuntu's script that asks for one. A snap does not see the folders in /tmp that the tests
# give to their browser.
is_snap() {
    case $1 in /snap/*) return ;; esac
    LC_ALL=C grep -q /snap/bin/ <(head -c 4096 "$1")
}

# Sets CHROMIUM. What it is set to already is taken as it is.
find_chromium() {
    local candidate
    if [ -n "${CHROMIUM:-}" ] && CHROMIUM=$(command -v "$CHROMIUM"); then
        export CHROMIUM
        return
    fi
    for candidate in chromium chromium-browser google-chrome \
        '/Applications/Chromium.app/Contents/MacOS/Chromium' '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'; do
        if CHROMIUM=$(command -v "$candidate") && ! is_snap "$CHROMIUM"; then
            export CHROMIUM
            return
        fi
    done
    CHROMIUM=''
    return 1
}

# shellcheck source=scripts/as_root.sh
. scripts/as_root.sh

# Whether apt has a Chromium. That of Ubuntu is absent, or has "snap" in its version.
offers_chromium() {
    case $(LC_ALL=C apt-cache policy chromium | sed -n 's/^ *Candidate: //p') in
        '' | '(none)' | *snap*) return 1 ;;
    esac
}

install_missing() {
    local packages=()
    command -v npm >/dev/null || packages+=(nodejs npm)
    has_python || packages+=(python3 python3-venv)
    find_chromium || packages+=(chromium)
    if [ "${#packages[@]}" = 0 ]; then return; fi
    as_root apt-get update -qq >&2 || say "apt-get update failed; going on with the lists at hand"
    if ! find_chromium && ! offers_chromium; then
        die "this system has no package of Chromium (on Ubuntu it is a snap, which the tests cannot use);" \
            "install Chrome from its own package, https://www.google.com/chrome/, or set CHROMIUM to the path of a Chromium"
    fi
    say "installing ${packages[*]}"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >&2
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
