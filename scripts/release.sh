#!/usr/bin/env bash
# Makes the files of a release from the commit that is checked out, in target/release-VERSION:
#
#   headmark-VERSION-TARGET.tar.gz   the program, its manual page, completions, the files of deploy/ and docs/
#   headmark_VERSION-1_ARCH.deb      on Debian and Ubuntu: the program as a service of systemd
#   headmark-VERSION.cdx.json        what the program is made of (CycloneDX)
#   openapi.json, NOTES.md           the interface, and what the changelog says of this version
#   SHA256SUMS                       of all of them
#
# The same commit gives the same files on the same machine. With --snapshot it needs no release: it skips the checks of the
# version and takes the notes from what is unreleased.
set -euo pipefail
unset CDPATH
cd "$(dirname "$0")/.."

say() { printf 'release: %s\n' "$*" >&2; }
die() {
    say "$@"
    exit 1
}

snapshot=''
case "${1:-}" in
'') ;;
--snapshot) snapshot=yes ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
heading="## [$version]"
[ -z "$snapshot" ] || heading='## [Unreleased]'

# ---- what a release needs -----------------------------------------------------------------------------------------

# What else names the version: a file, and a line of it as a regular expression.
repeated() {
    cat <<'END'
README.md                                     ^Version VERSION\.
docs/introduction.md                          ^Version VERSION\.
docs/operations/backup.md                     ^          image: registry\.example/headmark:VERSION #
docs/operations/deploy.md                     headmark_VERSION-1_amd64\.deb
docs/operations/deploy.md                     docker build -t registry\.example/headmark:VERSION \.
docs/operations/deploy.md                     docker push registry\.example/headmark:VERSION$
clients/python/pyproject.toml                 ^version = "VERSION"$
clients/typescript/README.md                  headmark-client-VERSION\.tgz
clients/typescript/package.json               ^  "version": "VERSION",$
clients/typescript/package-lock.json          ^  "version": "VERSION",$
console/package.json                          ^  "version": "VERSION",$
console/package-lock.json                     ^  "version": "VERSION",$
deploy/helm/headmark/Chart.yaml               ^version: VERSION$
deploy/helm/headmark/Chart.yaml               ^appVersion: VERSION$
deploy/kubernetes/example/kustomization.yaml  ^    newTag: VERSION$
END
}

check_versions() {
    local file line wrong=''
    while read -r file line; do
        line=${line//VERSION/$version}
        grep -q -e "$line" "$file" || {
            say "$file has no line with $line"
            wrong=yes
        }
    done < <(repeated)
    [ -z "$wrong" ] || die "these files have another version than Cargo.toml"
}

check() {
    [ -z "$(git status --porcelain)" ] || die "there are changes that are not committed"
    grep -qF "$heading - " CHANGELOG.md || die "CHANGELOG.md has no '$heading - DATE'"
    cmp -s "openapi/released/$version.json" openapi/openapi.json ||
        die "keep the document of this release: cp openapi/openapi.json openapi/released/$version.json"
    ! grep -q '^[^#]' openapi/released/accepted.txt || die "empty openapi/released/accepted.txt: its changes are released now"
    check_versions
}
[ -n "$snapshot" ] || check
grep -qF "$heading" CHANGELOG.md || die "CHANGELOG.md has no '$heading'"

# ---- the program --------------------------------------------------------------------------------------------------

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
export CARGO_INCREMENTAL=0
host=$(rustc --version --verbose | sed -n 's/^host: //p')
files=target/release-files
out=target/release-$version
rm -rf "$files" "$out"
mkdir -p "$files" "$out"

# Linked statically, as in the Dockerfile. Paths of this machine do not show.
RUSTFLAGS="-C target-feature=+crt-static --remap-path-prefix=$PWD=/headmark --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo" \
    cargo build --profile dist --locked --bin headmark --target "$host"
install -m 755 "${CARGO_TARGET_DIR:-target}/$host/dist/headmark" "$files/headmark"
"$files/headmark" man >"$files/headmark.1"
"$files/headmark" completions bash >"$files/headmark.bash"
"$files/headmark" completions zsh >"$files/_headmark"
"$files/headmark" completions fish >"$files/headmark.fish"
sed 's#/usr/local/bin/#/usr/bin/#' deploy/systemd/headmark.service >"$files/headmark.service"

[ "$("$files/headmark" --version)" = "headmark $version" ] || die "the program says another version than $version"
"$files/headmark" openapi | cmp -s - openapi/openapi.json || die "openapi/openapi.json is not that of the program: make openapi"

# ---- what is handed out -------------------------------------------------------------------------------------------

name=headmark-$version-$host
folder=$files/$name
mkdir -p "$folder"
# Without compose.yaml and Dockerfile: they build from the sources, which are not in the archive. Only what git tracks,
# in a snapshot with the changes that are not committed: secrets of an installation may lie beside the example.
tracked=$(git stash create)
git -c tar.umask=0022 archive "${tracked:-HEAD}" deploy docs README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT |
    tar -xf - -C "$folder"
rm -rf "$folder/deploy/debian"
cp "$files"/headmark "$files"/headmark.1 "$files"/headmark.bash "$files"/_headmark "$files"/headmark.fish "$folder"
# GNU tar only: names in order, one time, no owner.
if tar --version | grep -q GNU; then
    same=(--sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner)
else
    same=()
fi
tar -C "$files" ${same[@]+"${same[@]}"} -cf - "$name" | gzip -n9 >"$out/$name.tar.gz"

if command -v dpkg-deb >/dev/null; then
    cargo deb --version >/dev/null 2>&1 || cargo install --locked cargo-deb
    cargo deb --quiet --locked --no-build --no-strip --output "$out/"
else
    say "no dpkg here: no Debian package"
fi

cargo cyclonedx --version >/dev/null 2>&1 || cargo install --locked cargo-cyclonedx
trap 'rm -f headmark_bin.cdx.json' EXIT
cargo cyclonedx --quiet --format json --spec-version 1.5 --describe binaries --target "$host"
sed "s#$PWD#.#g" headmark_bin.cdx.json >"$out/headmark-$version.cdx.json"

cp openapi/openapi.json "$out/"
awk -v heading="$heading" 'index($0, heading) == 1 { found = 1; next } /^## \[/ { found = 0 } found' CHANGELOG.md >"$out/NOTES.md"
[ -s "$out/NOTES.md" ] || die "CHANGELOG.md says nothing under '$heading'"

sum() { if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi; }
(cd "$out" && sum -- * >../SHA256SUMS.new && mv ../SHA256SUMS.new SHA256SUMS)
say "made in $out:"
(cd "$out" && ls -l)
