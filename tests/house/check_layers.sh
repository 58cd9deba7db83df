#!/usr/bin/env bash
# check_layers.sh ROOT: the #include lines of the tree in ROOT keep the house rules. Names every line that does not, and then fails.
#   1. The folders form a line; each includes itself and what is to its left, always by the path from the root.
#   2. Only exec includes torch, NCCL or CUDA, and its headers no more of torch than <ATen/core/Tensor.h>.
#   3. Headers outside exec include neither nlohmann-json nor Boost.Graph (compile times).
set -euo pipefail
cd "${1:?usage: check_layers.sh ROOT}"
folders=(profiles traces sim planner analysis exec)

for folder in "${folders[@]}"; do
  [ -d "$folder" ] || { printf 'check_layers.sh: found no folder %s in %s\n' "$folder" "$PWD" >&2; exit 2; }
done
mapfile -t files < <(find "${folders[@]}" -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) | LC_ALL=C sort)
[ "${#files[@]}" -gt 0 ] || { printf 'check_layers.sh: found no source file in %s\n' "$PWD" >&2; exit 2; }

awk -v line="${folders[*]}" '
  function complain(rule) {
    printf "%s:%d: includes %s, but %s\n", FILENAME, FNR, included, rule
    broken = 1
  }
  BEGIN {
    count = split(line, names, " ")
    for (i = 1; i <= count; i++) position[names[i]] = i
  }
  FNR == 1 {
    split(FILENAME, parts, "/")
    folder = parts[1]
    is_header = FILENAME ~ /\.(h|cuh)$/
  }
  /^[ \t]*#[ \t]*include[ \t]*["<]/ {
    is_quoted = $0 ~ /include[ \t]*"/
    included = $0
    sub(/^[^"<]*["<]/, "", included)
    sub(/[">].*$/, "", included)
    split(included, parts, "/")
    first = included ~ /\// ? parts[1] : ""

    if (first in position) {
      if (position[first] > position[folder]) complain(first " is to the right of " folder)
      next
    }
    if (is_quoted) complain("quotes are for our own headers, by the path from the root")

    is_torch = included ~ /^(torch|ATen|c10|caffe2|at)\//
    is_device = included ~ /^(nccl|cuda|cublas|cudnn|cupti|nvtx3|cooperative_groups)/
    if (folder != "exec" && (is_torch || is_device)) complain("only exec names torch, NCCL or CUDA")
    if (folder == "exec" && is_header && is_torch && included != "ATen/core/Tensor.h")
      complain("headers of exec include no more of torch than <ATen/core/Tensor.h>")
    if (folder != "exec" && is_header && included ~ /^(nlohmann|boost\/graph)\//)
      complain("nlohmann-json and Boost.Graph stay in .cpp files")
  }
  END { exit broken }
' "${files[@]}"
