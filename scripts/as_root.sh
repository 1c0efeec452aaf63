# shellcheck shell=bash
# To be sourced by scripts that install what is missing. They have a `die` of their own.

# Runs a command as root.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "installing needs root or sudo"
    fi
}
