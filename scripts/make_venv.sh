# shellcheck shell=bash
# To be sourced by scripts that install programs of Python. They have a `die` of their own.

# Makes folder $1 a venv. On Debian and Ubuntu, Python alone cannot.
make_venv() {
    python3 -c 'import ensurepip, venv' 2>/dev/null ||
        die "install Python with venv; on Debian and Ubuntu: apt install python3-venv; with Homebrew: brew install python"
    python3 -m venv --clear "$1"
}
