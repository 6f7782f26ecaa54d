#!/usr/bin/env bash
# Builds provider.wasm of src/lib.rs. Needs rustup, which brings the compiler and the target that rust-toolchain.toml
# names (200 MB, once); Cargo.lock pins the crates by hash. No path of this machine gets into the bytes.
set -euo pipefail
cd "$(dirname "$0")"
. tools/bring.sh
need rustup "https://rustup.rs"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}
rustup toolchain install --no-self-update >&2
RUSTFLAGS="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo --remap-path-prefix=$PWD=." \
  cargo build --quiet --release --locked --target wasm32-wasip2
cp "$CARGO_TARGET_DIR/wasm32-wasip2/release/provider.wasm" provider.wasm
