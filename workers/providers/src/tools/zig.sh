# Sourced by what builds providers in Zig: from a source to a component, byte for byte the same anywhere.
# Expects `build`, a folder for tools and caches that is held by this build, and bring.sh.

bring_zig() { # FOLDER of requirements.lock, package-lock.json and component.mjs
  bring_python "$1/requirements.lock" "$build/venv"
  bring_npm "$1" "$build/npm" --omit=optional
  cp "$1/component.mjs" "$build/npm/"
}

# Zig -> core module -> component. The core's name is fixed: nothing of the paths gets into the bytes.
compile_zig() { # SOURCE OUT GUEST WIT CACHE
  local core=$build/core.wasm
  ZIG_GLOBAL_CACHE_DIR=$5 ZIG_LOCAL_CACHE_DIR=$5 "$build/venv/bin/python" -m ziglang build-exe \
    -target wasm32-freestanding -mcpu mvp+bulk_memory+sign_ext+nontrapping_fptoint \
    -O ReleaseSafe -fstrip -fno-entry -rdynamic --stack 65536 --name core \
    --dep provider "-Mroot=$1" "-Mprovider=$3/provider.zig" "-femit-bin=$core"
  node "$build/npm/component.mjs" "$core" "$4" provider "$2"
}
