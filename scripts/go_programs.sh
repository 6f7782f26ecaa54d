#!/usr/bin/env bash
# Builds the Go programs that tests run for real: opa, sops, age, age-keygen, helm, kustomize, an OpenID provider and
# tests/support/jwt_svids, each of one fixed version.
# What runs from the PATH or stands in FOLDER already is used, so that the second run is quick; opa, sops and helm take
# some minutes, once.
# Without Go nothing is built and tests that need one are skipped, which CI takes for a failure.
# Usage: go_programs.sh FOLDER     afterwards FOLDER has each of them that is not on the PATH
set -euo pipefail
folder=$(realpath -m "$1") here=$(realpath "${BASH_SOURCE[0]%/*}")
declare -A version=([age]=--version [age-keygen]=--version [helm]=version [kustomize]=version [opa]=version [openid-provider]= [jwt-svids]= [sops]=--version)
declare -A module=(
  [age]=filippo.io/age/cmd/age@v1.2.1
  [age-keygen]=filippo.io/age/cmd/age-keygen@v1.2.1
  [helm]=helm.sh/helm/v3/cmd/helm@v3.19.5
  [jwt-svids]=jwt-svids
  [kustomize]=sigs.k8s.io/kustomize/kustomize/v5@v5.7.1
  [opa]=github.com/open-policy-agent/opa@v1.22.2
  [openid-provider]=github.com/zitadel/oidc/v3/example/server@v3.45.6
  [sops]=github.com/getsops/sops/v3/cmd/sops@v3.9.4
)

say() { printf '%s\n' "$*" >&2; }
# Two have no such question.
runs() { [ -x "$2" ] && { [ -z "${version[$1]}" ] || "$2" "${version[$1]}" >/dev/null 2>&1; }; }
build() {
  local -a with=(-trimpath '-ldflags=-s -w')
  export GOBIN=$2
  [ "$1" = jwt-svids ] || { GOFLAGS=-mod=mod nice -n 10 go install "${with[@]}" "${module[$1]}"; return; }
  cd "$here/../tests/support/jwt_svids" && GOFLAGS=-mod=readonly nice -n 10 go install "${with[@]}" .
}
# Go names a program by the last part of its module.
named() { [ -e "$1/$2" ] || mv "$1"/* "$1/$2"; }
is_there() { { found=$(command -v "$1") && runs "$1" "$found"; } || runs "$1" "$folder/$1"; }

missing=()
for one in "${!module[@]}"; do is_there "$one" || missing+=("$one"); done
[ ${#missing[@]} -gt 0 ] || exit 0
command -v go >/dev/null || {
  say "go_programs: no ${missing[*]} found, and no Go to build it with; tests that need one are skipped"
  [ -z "${CI:-}" ]; exit; }

mkdir -p "$folder"
exec 9< "$folder"
flock -w 1800 9 || { say "go_programs: another build has not ended for half an hour"; exit 1; }
for one in "${missing[@]}"; do
  is_there "$one" && continue
  say "go_programs: building $one for the tests (not installed; once)"
  made=$(mktemp -d "$folder/.XXXXXX")
  # Into a folder of its own first: what stands in FOLDER is whole.
  (build "$one" "$made") &&
    named "$made" "$one" && runs "$one" "$made/$one" || {
    rm -rf "$made"
    say "go_programs: $one could not be built; see what go says above, or install $one and try again"; exit 1; }
  mv "$made/$one" "$folder/$one"
  rmdir "$made"
done
