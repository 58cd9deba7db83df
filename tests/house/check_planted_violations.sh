#!/usr/bin/env bash
# check_planted_violations.sh: check_layers.sh passes a small tree that keeps the rules, and finds each violation planted in it.
set -euo pipefail
check=$(cd "$(dirname "$0")" && pwd)/check_layers.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# lay_tree: every folder includes itself and its left neighbours; exec's source includes torch.
lay_tree() {
  rm -rf "${tree:?}"/*
  local folder left=() neighbour
  for folder in profiles traces sim planner analysis exec; do
    left+=("$folder")
    mkdir "$tree/$folder"
    printf '#pragma once\n#include <vector>\n' >"$tree/$folder/model.h"
    for neighbour in "${left[@]}"; do printf '#include "%s/model.h"\n' "$neighbour"; done >"$tree/$folder/model.cpp"
  done
  printf '#include <nlohmann/json.hpp>\n#include <boost/graph/adjacency_list.hpp>\n' >>"$tree/sim/model.cpp"
  printf '#include <ATen/core/Tensor.h>\n' >>"$tree/exec/model.h"
  printf '#include <torch/nn.h>\n#include <nccl.h>\n' >>"$tree/exec/model.cpp"
}

# expect_found FILE LINE: with LINE added to FILE the check fails and names the file.
expect_found() {
  lay_tree
  printf '%s\n' "$2" >>"$tree/$1"
  local answer
  if answer=$("$check" "$tree"); then
    printf 'not found: %s in %s\n' "$2" "$1" >&2
    exit 1
  fi
  case $answer in
    "$1:"*) ;;
    *)
      printf 'found, but not named: %s in %s; the answer was: %s\n' "$2" "$1" "$answer" >&2
      exit 1
      ;;
  esac
}

lay_tree
"$check" "$tree" || { printf 'the tree without a violation was refused\n' >&2; exit 1; }

expect_found sim/model.h '#include "exec/model.h"'
expect_found profiles/model.cpp '  #  include <traces/model.h>'
expect_found sim/model.cpp '#include "model.h"'
expect_found analysis/model.cpp '#include "../exec/model.h"'
expect_found planner/model.cpp '#include <torch/torch.h>'
expect_found planner/model.h '#include <ATen/core/Tensor.h>'
expect_found analysis/model.cpp '#include <c10/util/Exception.h>'
expect_found traces/model.cpp '#include <nccl.h>'
expect_found sim/model.cpp '#include <cuda_runtime.h>'
expect_found sim/model.h '#include <nlohmann/json_fwd.hpp>'
expect_found planner/model.h '#include <boost/graph/adjacency_list.hpp>'
expect_found exec/model.h '#include <torch/torch.h>'
