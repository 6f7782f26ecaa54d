#!/usr/bin/env bash
# Builds what a release consists of, from a commit and nothing else: source archives and wheels of the gateway and of its
# client, a bill of materials (CycloneDX) of what the gateway runs with, a Debian package (deb.sh), container images where
# docker or podman is at hand (images.sh), and their SHA-256. Publishes nothing.
# Usage: release.sh PYTHON FOLDER     FOLDER is made anew
set -euo pipefail
python=$(realpath -s "$1") folder=$(realpath -m "$2")
cd "$(dirname "$0")/.."

say() { printf 'release: %s\n' "$*" >&2; }
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
problems=()
[ -z "$(git status --porcelain)" ] || problems+=("the checkout has changes that are not committed: commit or stash them")
grep -q "^## \[$version\]" CHANGELOG.md ||
  problems+=("CHANGELOG.md has no section [$version]: give [Unreleased] that name and its date")
for other in ipc/settings.py sdk/gateway_client/version.py; do
  grep -q "\"$version\"" "$other" || problems+=("$other has another version than pyproject.toml, $version")
done
if [ ${#problems[@]} -gt 0 ]; then
  for one in "${problems[@]}"; do say "$one"; done
  say "${#problems[@]} problems, nothing built"
  exit 1
fi

work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
git archive --prefix=tree/ HEAD | tar -x -C "$work"
# The same commit gives the same bytes: archives carry its time.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct); export SOURCE_DATE_EPOCH
rm -rf "$folder"
for project in . sdk; do
  say "building $project"
  (cd "$work/tree/$project" && "$python" -m build --no-isolation --outdir "$folder" . >"$work/said" 2>&1) || {
    cat "$work/said" >&2; exit 1; }
done
"$python" -m cyclonedx_py requirements --pyproject pyproject.toml --output-reproducible --short-PURLs \
  --of JSON -o "$folder/action-gateway-$version.cdx.json" requirements.lock 2>"$work/said" || { cat "$work/said" >&2; exit 1; }
bash scripts/deb.sh "$python" "$work/tree" "$folder" "$version"
bash scripts/images.sh "$work/tree" "$folder" "$version"
(cd "$folder" && sha256sum -- * > "$work/sums" && mv "$work/sums" SHA256SUMS)
say "in $folder:"
cat "$folder/SHA256SUMS" >&2
say "next: git tag -s v$version && git push origin v$version, then upload the folder (CONTRIBUTING.md, \"Releases\")"
