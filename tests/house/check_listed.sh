#!/usr/bin/env bash
# check_listed.sh TREE: every test source is compiled by some CMakeLists.txt under tests/, which names it by its path from there.
set -euo pipefail
cd "$1"
mapfile -t lists < <(find tests -name CMakeLists.txt)
[ "${#lists[@]}" -gt 0 ] || { printf 'check_listed.sh: found no CMakeLists.txt under %s/tests\n' "$PWD" >&2; exit 2; }

# The paths from the root of all test sources that a list names; comments name none.
named_in() {
  sed 's/#.*//' "$1" | grep -oE '[^[:space:]()";]+_test\.cpp' | sed "s|^|$(dirname "$1")/|" || true
}

listed=$(for list in "${lists[@]}"; do named_in "$list"; done)
missing=0
while IFS= read -r source; do
  if ! grep -qxF -- "$source" <<<"$listed"; then
    printf '%s: in no CMakeLists.txt\n' "$source"
    missing=1
  fi
done < <(find tests -name '*_test.cpp' | LC_ALL=C sort)
exit "$missing"
