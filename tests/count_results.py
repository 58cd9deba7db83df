#!/usr/bin/env python3
"""count_results.py FOLDER: adds up the results that test programs left in FOLDER (JSON of GoogleTest), and names what was skipped, by reason."""
import collections
import json
import pathlib
import sys


def read_tests(folder):
    """Yields (suite, test) of every result in the folder."""
    for path in sorted(pathlib.Path(folder).glob("*.json")):
        for suite in json.loads(path.read_text()).get("testsuites", []):
            for test in suite["testsuite"]:
                yield suite["name"], test


def reason_of(test):
    """The first line of what a skipped test says, without the place in its source."""
    messages = [entry.get("message", "") for entry in test.get("skipped", [])]
    lines = [line for line in "\n".join(messages).splitlines() if line and not line.startswith("/")]
    return lines[0] if lines else "no reason given"


def main():
    suites = set()
    passed = failed = 0
    skipped = collections.Counter()
    for suite, test in read_tests(sys.argv[1]):
        suites.add(suite)
        if test.get("result") == "SKIPPED":
            skipped[reason_of(test)] += 1
        elif test.get("failures"):
            failed += 1
        elif test.get("status") == "RUN":
            passed += 1
    print(f"\nGoogleTest: {passed + failed + sum(skipped.values())} tests in {len(suites)} suites")
    for reason, count in sorted(skipped.items()):
        print(f"skipped {count}: {reason}")
    print(f"{passed} passed, {failed} failed, {sum(skipped.values())} skipped")


main()
