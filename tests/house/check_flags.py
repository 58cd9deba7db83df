#!/usr/bin/env python3
"""check_flags.py ROOT [SUBCOMMAND...]: every flag that a subcommand describes is also read, so none is taken and then ignored.

A flag is read where a source of the subcommand hands its name to a function together with the parsed values, `is_set(values, "clip")`, or
asks the values for it, `values["clip"]`. What only looks whether a flag was given is no read: `values.count("clip")` (unless the flag has no
value), refuse_together(...), refuse_flags(...) and named_files(...). A function or a lambda that is handed a name, or the first part of one
(`name + "-latency"`), reads the names that its calls make. The sources of a subcommand are its main, that of the program that it hands over
to, and all that they include, with the sources of these headers. Prints `file: sentence` for each fault, and exits with 1 if there is one.
"""

import functools
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True

from check_formats import FUNCTION, STRING, SUBCOMMANDS, flags_in_sources, read_sources  # noqa: E402

OWN = {"help", "version", "describe-flags"}  # run_verb() reads them for all
HANDS_OVER = {"verify": "verify_plan"}  # a subcommand -> the program that it starts with the same flags
VALUES = r"(?:values|flags|given)"
NAME = r'"([a-z][a-z-]*)"'
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
# A call that is handed the values; those that look only whether a flag was given are left out.
READ = rf"\b(?!refuse_together\b|refuse_flags\b|named_files\b)\w+\(\s*{VALUES},\s*"
CALL = re.compile(READ + NAME)
ASKED = re.compile(rf"\b{VALUES}(?:\[|\.at\()\s*{NAME}")
MADE = re.compile(rf'{READ}(\w+) \+ "(-[a-z-]+)"')
COUNTED = re.compile(rf"\b{VALUES}\.count\({NAME}\)")
LAMBDA = re.compile(r"const auto (\w+) = \[[&=]\]\(const (?:char\*|std::string&) (\w+)\) \{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")
VALUELESS = re.compile(rf'\(\s*"([a-z][a-z-]*)",\s*{STRING}\s*\)')


def find_main(root, name):
    return next(root.glob(f"*/*/{name}_main.cpp"), None) or next(root.glob(f"*/{name}_main.cpp"))


def find_sources(root, mains):
    """The mains, all that they include, and the sources of these headers, as paths from the root."""
    found, rest = set(), [main.relative_to(root).as_posix() for main in mains]
    while rest:
        path = rest.pop()
        if path in found or not (root / path).is_file():
            continue
        found.add(path)
        rest += INCLUDE.findall((root / path).read_text(encoding="utf-8"))
        if path.endswith(".h"):
            header = root / path
            parts = header.parent.glob(f"{header.stem}*.cpp")
            rest += [part.relative_to(root).as_posix() for part in parts if not part.stem.endswith("_main")]
    return sorted(found)


@functools.cache
def find_reads(root, path):
    """The names of the flags that a source reads. What it hands a name to, or a part of one, stands in the same source."""
    text = read_sources(root, [path])
    names = set(CALL.findall(text)) | set(ASKED.findall(text)) | (set(COUNTED.findall(text)) & set(VALUELESS.findall(text)))
    for function, parameter, body in LAMBDA.findall(text):
        if re.search(rf"{READ}{parameter}\b", body):
            names |= set(re.findall(rf"\b{function}\({NAME}", text))
    for function, parameters, body in FUNCTION.findall(text) if MADE.search(text) else []:
        begins = re.findall(rf"\b{function}\(\s*{VALUES},\s*{NAME}", text)
        ends = [end for parameter, end in MADE.findall(body) if re.search(rf"\b{parameter}\b", parameters)]
        names |= {begin + end for begin in begins for end in ends}
    return names


def check_flags(root, subcommands):
    for name in subcommands:
        mains = [find_main(root, program) for program in (name, HANDS_OVER.get(name)) if program]
        read = set().union(*(find_reads(root, path) for path in find_sources(root, mains)))
        for flag in sorted(flags_in_sources(root, name) - OWN - read):
            yield f"{mains[0].relative_to(root)}: frazil {name} takes the flag `--{flag}` and does not read it"


def main(arguments):
    if len(arguments) < 2 or not set(arguments[2:]) <= set(SUBCOMMANDS):
        raise SystemExit(f"usage: check_flags.py ROOT [SUBCOMMAND...], each SUBCOMMAND one of {', '.join(SUBCOMMANDS)}")
    faults = list(check_flags(Path(arguments[1]), arguments[2:] or SUBCOMMANDS))
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
