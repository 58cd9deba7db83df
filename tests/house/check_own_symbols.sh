#!/usr/bin/env bash
# Passes when no program that loads libtorch offers it functions of the standard library: what a
# program has made of templates and inline functions would stand in for libtorch's own
# (exec/own_symbols.map).
set -euo pipefail
programs=$1
for name in frazil-train frazil-member frazil-profile; do
  offered=$(nm -D --defined-only "$programs/$name" | grep -E ' [TWu] _Z(N|NK|ZN)?St' |
    grep -v -E '_Sp_make_shared_tag' || true)
  if [ -n "$offered" ]; then
    printf '%s offers libtorch functions of the standard library:\n%s\n' "$name" "$offered" >&2
    exit 1
  fi
done
