#!/usr/bin/env bash
# check_listed.sh TREE: every test source is compiled by some CMakeLists.txt under tests/.
set -euo pipefail
cd "$1"
mapfile -t lists < <(find tests -name CMakeLists.txt)
[ "${#lists[@]}" -gt 0 ] || { printf 'check_listed.sh: found no CMakeLists.txt under %s/tests\n' "$PWD" >&2; exit 2; }
missing=0
while IFS= read -r source; do
  if ! grep -qF "$(basename "$source")" "${lists[@]}"; then
    printf '%s: in no CMakeLists.txt\n' "$source"
    missing=1
  fi
done < <(find tests -name '*_test.cpp' | LC_ALL=C sort)
exit "$missing"
