#!/usr/bin/env bash
# Builds the container images of a release and packs each: `zcat FILE | docker load`, or podman, brings it back. Where
# neither engine answers they are left out, and that is said. IMAGE_OPTIONS are more options of its build.
# The base is asked for once, and all images are built on it by its digest; images.txt says which image is on which base.
# Usage: images.sh TREE FOLDER VERSION     afterwards FOLDER has images.txt, and NAME-VERSION-MACHINE.image.tar.gz of each
set -euo pipefail
tree=$1 folder=$2 version=$3
declare -A target=([action-gateway]=gateway [action-gateway-egress]=egress)

say() { printf 'release: %s\n' "$*" >&2; }

for engine in docker podman; do
  if "$engine" info >/dev/null 2>&1; then break; fi
  engine=
done
[ -n "$engine" ] || { say "no docker and no podman answers here: the container images are left out"; exit 0; }

said=$(mktemp); trap 'rm -f "$said"' EXIT
checked() { "$engine" "$@" >"$said" 2>&1 || { cat "$said" >&2; exit 1; }; }
base=$(sed -n 's/^ARG BASE=//p' "$tree/contrib/container/Containerfile")
checked pull "$base"
base=$("$engine" image inspect --format '{{index .RepoDigests 0}}' "$base")
case $base in *@sha256:*) ;; *) say "the base has no digest: $base"; exit 1 ;; esac
read -ra options <<< "${IMAGE_OPTIONS:-}"
for name in "${!target[@]}"; do
  image=$name:$version
  say "building the image $image with $engine"
  checked build "${options[@]}" --build-arg "BASE=$base" -f "$tree/contrib/container/Containerfile" \
    --target "${target[$name]}" -t "$image" "$tree"
  "$engine" save "$image" | gzip -n > "$folder/$name-$version-$(uname -m).image.tar.gz"
  id=$("$engine" image inspect --format '{{.Id}}' "$image")
  echo "$image sha256:${id#sha256:} on $base" >> "$folder/images.txt"
done
