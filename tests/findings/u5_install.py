#!/usr/bin/env python3
# An installed tree runs from wherever it is moved to, another project plans with find_package(frazil), and pages tell every flag.
"""Installs from the build folder of the front door, moves the tree, and goes a user's and a project's way through it."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("FRAZIL", TREE / "build/bin/frazil")).resolve().parent
BUILD = BIN.parent
PLANNER = "plan cluster simulate verify import export report ablate reproduce".split()
TORCH = "member profile train verify-plan".split()
WHAT_IF = "simulate --stages 2 --micro-batches 2 --schedule gpipe --forward 1ms --backward 2ms --json".split()
RUN = {"format": "frazil.run", "version": 1, "epochs": 1,
       "model": {"image": 8, "channels": 1, "patch": 4, "dim": 16, "blocks": 1, "heads": 2, "classes": 10, "dropout": 0}}


class Failure(Exception):
    """What does not hold."""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, **options)
    if done.returncode:
        raise Failure(f"`{' '.join(str(word) for word in command)}` exits {done.returncode}: "
                      f"{(done.stderr + done.stdout).strip()[-600:]}")
    return done.stdout


def check_what_if(front_door):
    answer = json.loads(run(front_door, *WHAT_IF, cwd="/"))
    if answer["makespan_ns"] != 9_000_000:
        raise Failure(f"{front_door} answers {answer['makespan_ns']} ns for a step of 9 ms")


def install(folder, *components):
    """Installs the components into a folder and gives back another, where they then lie."""
    for component in components:
        run("cmake", "--install", BUILD, "--prefix", folder / "first", "--component", component)
    (folder / "first").rename(folder / "moved tree")
    return folder / "moved tree"


def check_pages(root):
    """Every flag of every program stands in its manual page and in the completion of each shell."""
    shells = {"bash": "share/bash-completion/completions/frazil", "zsh": "share/zsh/vendor-completions/_frazil",
              "fish": "share/fish/vendor_completions.d/frazil.fish"}
    texts = {shell: (root / path).read_text() for shell, path in shells.items()}
    flags = 0
    for name in PLANNER:
        told = json.loads(run(root / "bin" / f"frazil-{name}", "--describe-flags"))
        page = (root / f"share/man/man1/frazil-{name}.1").read_text()
        listed = set(re.findall(r"^  --([a-z-]+)", run(root / "bin" / f"frazil-{name}", "--help"), re.M))
        if listed != {flag["name"] for flag in told["flags"]}:
            raise Failure(f"--describe-flags and --help of {name} differ")
        for flag in listed:
            dashed = flag.replace("-", "\\-")
            if f"\\fB\\-\\-{dashed}\\fR" not in page:
                raise Failure(f"frazil-{name}.1 lacks --{flag}")
            for shell, form in (("bash", f"--{flag}"), ("zsh", f"*--{flag}["), ("fish", f" -l {flag} ")):
                if form not in texts[shell]:
                    raise Failure(f"completion of {shell} lacks --{flag} of {name}")
            flags += 1
    check_bash(root / shells["bash"])
    for shell in ("zsh", "fish"):
        if shutil.which(shell):
            run(shell, "-n", root / shells[shell])
    if shutil.which("groff"):
        for page in sorted((root / "share/man/man1").iterdir()):
            said = subprocess.run(["groff", "-man", "-Tutf8", "-ww", str(page)], capture_output=True, text=True)
            if said.returncode or said.stderr:
                raise Failure(f"groff of {page.name}: {said.stderr.strip()[:300]}")
    return flags


def check_links(pages):
    """Every link of an installed page that leads to a file leads to one that is installed."""
    links = 0
    for page in sorted(path for path in pages.rglob("*.md") if "licences" not in path.parts):
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            path = link.partition("#")[0]
            if not path or "://" in path or path.startswith("mailto:"):
                continue
            links += 1
            if not (page.parent / path).exists():
                raise Failure(f"{page.relative_to(pages)} links to {path}, which is not installed")
    if links < 20:
        raise Failure(f"the installed pages have {links} links to files")


def check_bash(script):
    """What bash completes for words of which the last is begun."""
    asked = (("pl", "plan"), ("plan --prof", "--profile"), ("import ki", "kineto"), ("reproduce pipe-", "pipe-bd"),
             ("help sim", "simulate"), ("plan --profile mod", ""), ("plan --batch ", ""),
             ("plan --schedules 1f", "1f1b"), ("plan --schedules gpipe,zb-v-", "gpipe,zb-v-auto"), ("plan --planner torchg", "torchgpipe"),
             ("simulate --schedule varu", "varuna"), ("plan --reduction ", "exact fast"), ("cluster --preset h100-sx", "h100-sxm"),
             ("import --optimizer adam", "adamw adam adamax"), ("export --to pytorch", "pytorch-csv"))
    for line, expected in asked:
        words = ["frazil", *line.split(" ")]
        listed = " ".join(f"'{word}'" for word in words)
        answer = run("bash", "-c", f"source '{script}'; COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _frazil; "
                     "echo \"${COMPREPLY[*]}\"").strip()
        if answer != expected:
            raise Failure(f"bash completes `frazil {line}` to `{answer}`, expected `{expected}`")


def check_consumer(root, folder):
    """A project that knows the prefix alone configures, builds, and plans."""
    source = TREE / "tests/install/consumer"
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    run("cmake", *generator, "-S", source, "-B", folder / "consumer", f"-DCMAKE_PREFIX_PATH={root}")
    run("cmake", "--build", folder / "consumer")
    best = int(run(folder / "consumer/consumer"))
    if best != 48_000_000:
        raise Failure(f"the consumer's best step takes {best} ns, expected 48 ms: 8 x 12 ms of work on two devices")
    for path in (root / "lib/cmake/frazil").iterdir():
        if str(TREE) in path.read_text() or str(BUILD) in path.read_text():
            raise Failure(f"{path.name} names a place of the checkout")


def check_torch(root, folder):
    """The programs with libtorch take their libraries and data from the moved tree alone."""
    for name in TORCH:
        loaded = run("ldd", root / "bin" / f"frazil-{name}")
        strange = [line for line in loaded.splitlines() if "not found" in line or "torch" in line and str(root) not in line]
        if strange:
            raise Failure(f"frazil-{name} loads {strange[0].strip()}")
    (folder / "run.json").write_text(json.dumps(RUN))
    (root / "share/frazil/data/digits.csv.gz").stat()
    run(root / "bin/frazil", *"profile --run run.json --devices 1 --rounds 1 --steps 2 --out model.json --quiet".split(), cwd=folder,
        env={"PATH": os.environ["PATH"]})


def check_archive(folder):
    """The archive of the programs without libtorch runs where it is unpacked."""
    run("cpack", "-G", "TGZ", "-D", "CPACK_COMPONENTS_ALL=planner", "-B", folder / "packages", cwd=BUILD)
    archives = sorted((folder / "packages").glob("*.tar.gz"))
    if len(archives) != 1:
        raise Failure(f"cpack made {[path.name for path in archives]}, expected one archive")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(folder / "unpacked")
    front_doors = list((folder / "unpacked").rglob("bin/frazil"))
    if len(front_doors) != 1:
        raise Failure(f"the archive holds {len(front_doors)} front doors")
    check_what_if(front_doors[0])
    for name in ("profile", "verify"):
        missing = subprocess.run([front_doors[0], name], capture_output=True, text=True)
        if missing.returncode != 1 or "libtorch" not in missing.stderr or len(missing.stderr.splitlines()) != 1:
            raise Failure(f"without its component {name} says: {missing.stderr.strip()}")
    return archives[0].stat().st_size


def main():
    if not (BUILD / "CMakeCache.txt").exists() or not shutil.which("cmake"):
        print(f"skipped: {BUILD} is no build folder of CMake")
        return 77
    has_torch = (BIN / "frazil-train").exists()
    try:
        with tempfile.TemporaryDirectory(dir=BUILD, prefix="install-") as name:
            folder = pathlib.Path(name)
            root = install(folder, "planner", "development", *(["torch"] if has_torch else []))
            check_what_if(root / "bin/frazil")
            (folder / "linked").symlink_to(root / "bin/frazil")
            check_what_if(folder / "linked")
            flags = check_pages(root)
            check_links(root / "share/doc/frazil")
            check_consumer(root, folder)
            if has_torch:
                check_torch(root, folder)
            size = check_archive(folder)
    except Failure as failure:
        print(failure)
        return 1
    print(f"a moved tree runs{', libtorch too' if has_torch else ''}; a project plans with it; {flags} flags stand in pages and completion; "
          f"the archive without libtorch has {size / 1e6:.1f} MB")
    return 0


sys.exit(main())
