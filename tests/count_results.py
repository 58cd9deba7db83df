#!/usr/bin/env python3
"""count_results.py FOLDER: adds up the results that test programs left in FOLDER (XML of GoogleTest), and names what was skipped, by reason."""
import collections
import pathlib
import sys
import xml.etree.ElementTree


def read_tests(folder):
    """Yields (suite, test) of every result in the folder."""
    for path in sorted(pathlib.Path(folder).glob("*.xml")):
        for suite in xml.etree.ElementTree.parse(path).getroot().iter("testsuite"):
            for test in suite.iter("testcase"):
                yield suite.get("name"), test


def reason_of(skipped):
    """The first line of what a skipped test says, without the place in its source."""
    lines = [line.strip() for line in (skipped.get("message") or skipped.text or "").splitlines()]
    told = [line for line in lines if line and not line.startswith("/")]
    return told[0] if told else "no reason given"


def main():
    suites = set()
    passed = failed = 0
    skipped = collections.Counter()
    for suite, test in read_tests(sys.argv[1]):
        if test.get("status") == "notrun":
            continue
        suites.add(suite)
        if test.find("skipped") is not None:
            skipped[reason_of(test.find("skipped"))] += 1
        elif test.find("failure") is not None:
            failed += 1
        else:
            passed += 1
    print(f"\nGoogleTest: {passed + failed + sum(skipped.values())} tests in {len(suites)} suites")
    for reason, count in sorted(skipped.items()):
        print(f"skipped {count}: {reason}")
    print(f"{passed} passed, {failed} failed, {sum(skipped.values())} skipped")


main()
