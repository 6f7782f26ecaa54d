#!/bin/sh
# Puts provider.wasm in force for the action NAME: the module goes into ACTIONS/modules by its digest, the digest into the
# manifest and into trusted_modules.yaml. Its predecessor goes. Whoever runs this trusts the bytes that they have built;
# where others build and you review, enter the digest by hand (docs/providers.md, "Trust").
# Usage: install.sh ACTIONS
set -eu
cd "$(dirname "$0")"
actions=$1 manifest=$1/NAME.yaml trusted=$1/trusted_modules.yaml
note="NAME, built in providers/NAME"

say() { printf 'NAME: %s\n' "$*" >&2; }
replace() { cat > "$1.new" && mv "$1.new" "$1"; }

digest=$(sha256sum provider.wasm | cut -d ' ' -f 1)
[ -e "$trusted" ] || echo 'digests:' | replace "$trusted"
grep -qx 'digests:' "$trusted" || { say "$trusted has no line 'digests:' to go on below; enter sha256:$digest there yourself"; exit 1; }
[ -e "$manifest" ] || mv NAME.yaml "$manifest"
old=$(sed -n 's/^provider_module_digest: sha256:\([0-9a-f]\{64\}\)$/\1/p' "$manifest")
[ -n "$old" ] || { say "$manifest has no line 'provider_module_digest: sha256:…'; name sha256:$digest there yourself"; exit 1; }

mkdir -p "$actions/modules"
replace "$actions/modules/$digest.wasm" < provider.wasm
grep -q "\"sha256:$digest\"" "$trusted" ||
  { cat "$trusted"; printf '  "sha256:%s": %s\n' "$digest" "$note"; } | replace "$trusted"
sed "s/^\(provider_module_digest: sha256:\)$old\$/\1$digest/" "$manifest" | replace "$manifest"

is_named() { grep -qs "^provider_module_digest: *sha256:$old" "$actions"/*.yaml "$actions"/*.yml; }
if [ "$old" != "$digest" ] && ! is_named; then
  grep -v "\"sha256:$old\": $note\$" "$trusted" | replace "$trusted"
  grep -q "$old" "$trusted" || rm -f "$actions/modules/$old.wasm"
fi
say "runs sha256:$digest ($(wc -c < provider.wasm) bytes); next: make call, or gatectl reload"
