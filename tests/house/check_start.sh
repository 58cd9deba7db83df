#!/usr/bin/env bash
# check_start.sh FOLDER: the programs in FOLDER that plan, simulate, import, export and report start without libtorch.
set -euo pipefail
folder=${1:?usage: check_start.sh FOLDER}

for program in frazil frazil-plan frazil-simulate frazil-import frazil-export frazil-report; do
  needed=$(ldd "$folder/$program") || { printf '%s/%s is no program that starts here\n' "$folder" "$program" >&2; exit 1; }
  case $needed in
    *libtorch* | *libc10* | *libcudart*)
      printf '%s loads libtorch:\n%s\n' "$program" "$needed" >&2
      exit 1
      ;;
  esac
  # The list is only worth something where it is one: a C++ program has at least its own library.
  case $needed in
    *libstdc++*) ;;
    *)
      printf '%s: found no libstdc++ among what it loads:\n%s\n' "$program" "$needed" >&2
      exit 1
      ;;
  esac
done
