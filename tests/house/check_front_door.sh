#!/usr/bin/env bash
# check_front_door.sh FRAZIL CASE: one promise of the front door. A copy of FRAZIL is tried in a folder where only a false frazil-train lies beside it.
# shellcheck disable=SC2016  # backquotes are quotation marks here
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "${1:?usage: check_front_door.sh FRAZIL CASE}" "$folder/frazil"
printf '#!/bin/sh\nprintf "<%%s>" "$@"\nexit 7\n' >"$folder/frazil-train"
chmod +x "$folder/frazil-train"

# expect CODE OUT ERR ARGUMENTS...: the exit code, and patterns for what is printed.
expect() {
  local code=$1 out=$2 err=$3 found=0
  shift 3
  "$folder/frazil" "$@" >"$folder/out" 2>"$folder/err" </dev/null || found=$?
  # shellcheck disable=SC2053  # out and err are patterns
  if [ "$found" != "$code" ] || [[ $(<"$folder/out") != $out ]] || [[ $(<"$folder/err") != $err ]]; then
    printf 'frazil %s: found exit %s, expected %s\nstdout (expected %s):\n%s\nstderr (expected %s):\n%s\n' \
      "$*" "$found" "$code" "$out" "$(<"$folder/out")" "$err" "$(<"$folder/err")" >&2
    exit 1
  fi
}

case ${2:-} in
  arguments) expect 7 '<--plan><a b><>' '' train --plan 'a b' '' ;;
  help)
    expect 0 'usage: frazil <subcommand>*profile*plan *(not built)*cluster*simulate*train*verify*import*export*report*check*ablate*reproduce*' '' --help
    expect 0 'frazil [0-9]*.[0-9]*.[0-9]*' '' --version
    expect 0 'usage: frazil <subcommand>*' '' help
    expect 7 '<--help>' '' help train
    expect 2 '' 'frazil: found subcommand `fly`*' help fly
    expect 2 '' 'frazil: found `plan`, expected one subcommand after help' help train plan
    expect 2 '' 'usage: frazil <subcommand>*'
    if grep '^  train ' "$folder/err" | grep 'not built'; then exit 1; fi
    ;;
  unknown) expect 2 '' 'frazil: found subcommand `fly`, expected one of profile, plan, cluster, simulate, train, verify, import, export, report, check, ablate, reproduce' fly
    expect 2 '' 'frazil: found subcommand `plna`, expected one of *; did you mean plan?' plna
    expect 2 '{"error":{"code":2,*"file":"command line",*' 'frazil: found subcommand `plna`, *' plna --json
    expect 2 '' 'frazil: found subcommand `a\\x1b\[31m`, *' $'a\e[31m'
    expect 7 '<--plan>' '' Train --plan
    ;;
  missing)
    expect 1 '' 'frazil: found no */frazil-profile, expected it beside frazil: *libtorch*' profile
    expect 1 '' 'frazil: found no */frazil-plan, expected it beside frazil: build all*' plan
    ;;
  *)
    printf 'found case `%s`, expected arguments, help, unknown or missing\n' "${2:-}" >&2
    exit 2
    ;;
esac
