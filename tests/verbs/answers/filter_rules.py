"""What is not compared: `#` takes the place of what was measured, and of machine and date."""

import re

# Files, by a regular expression for the whole name, that are not recorded.
LEFT_OUT = [
    # A picture of predicted.csv and measured.csv, which are compared.
    r".*/phase-\d+/trace\.json",
    # Measured times and the order of files go into it; what matters is what a run that goes on from it becomes, and
    # that is compared.
    r".*/checkpoints/.*",
]


def is_left_out(name):
    return any(re.fullmatch(files, name) for files in LEFT_OUT)


def by_device(match):
    """Rows of a measured time line by device and lane, each still in the order of its starts."""
    first, header, *rows = match.group().splitlines()
    rows.sort(key=lambda row: row.split(",")[:2])
    return "".join(line + "\n" for line in [first, header, *rows])


def without_times(match):
    """A curve [[ns, bytes], ...] as [bytes, ...]."""
    return re.sub(r"\[\d+,(\d+)\]", r"\1", match.group())


def of_key(keys, value, space=" ?"):
    """Matches a member of JSON, its key and colon as group 1."""
    return f'("(?:{keys})":{space}){value}'


NUMBER = r"[-+.e\d]+"
PROGRESS = "(?:profile|train|verify), measuring: stderr"
MEASURED_LINE = r"train, measuring: file .*/measured\.csv"

# Title of a part, what in it is not compared, and what is put in its place: text, or a function of the match.
FILTER = [
    # A failure that is a bug names file and line of the code, which every change moves.
    (".* stderr", r"(?<=: )(?:\w+/)+\w+\.(?:cpp|h):\d+(?=: )", "<place in the code>"),
    # The provenance of a profile and of a run names day, processor, system and versions.
    ("(?:profile|train), measuring: (?:stdout|file .*)",
     of_key("cores|date|foreign_cores|mkl_cbwr|processor|system|torch", r'"[^"]*"'), r'\1"#"'),
    # Profiled times of layers, overheads and links are measured; sizes beside them are not.
    ("profile, measuring: (?:stdout|file .*)", of_key(r"\w+_ns|bandwidth_bytes_per_second", r"\d+", " "), r"\1#"),
    # In the table of a profile, columns of ms and the line below it are measured.
    ("profile, measuring: stdout", r"(?<= )\d+\.\d{3}\b|(?<=link )[\d.]+ \w+(?=/s$)", "#"),
    # Columns are as wide as their longest number, and numbers are measured.
    ("(?:profile|verify|train), measuring: stdout", r"(?<=\S)  +(?=\S)|^ +(?=\d)|-{2,}", " "),
    # Rate and time of the line that tells how far it is; where it is drawn goes by the clock.
    (PROGRESS, r"^(\w+ 100%, \d+ of \d+), [\d.]+ (\w+)/s, in [\d: s]+", r"\1, # \2/s, in #"),
    # Progress on the way, a line every five seconds: how many there are goes by the clock.
    (PROGRESS, r"^\w+ \d\d?%, \d+ of \d+.*\n", ""),
    # The load of other programs is measured, and told where it is high.
    ("(?:profile|train), measuring: std(?:err|out)",
     r"^(?:frazil profile: )?other programs kept .* cores busy meanwhile.*\n", ""),
    # Whether a layer's W is lost in noise is measured.
    ("profile, measuring: stdout", r"^note: W of .* is 0 within noise: .*\n", ""),
    # Verified ratios are measured, and so is how many blocks count and the verdict.
    ("verify, measuring: stdout", r"^(\S.*?)(?: \d+\.\d{3}){3} \d+ [A-Z]+$", r"\1 # # # # #"),
    # Both times of a verified step are measured, and what follows from them.
    ("verify, measuring: stdout",
     r"(?<= )[\d.]+(?= ms)|(?<=; )\d+(?= blocks dropped)|^(?:PASS|FAIL|INCONCLUSIVE)$", "#"),
    # The same in JSON; names and their order are not measured.
    ("verify, measuring: stdout",
     of_key(r"verdict|\w+_step_ns|(?:dropped_)?blocks|median|low|high", f'(?:"[A-Z]+"|{NUMBER})', " "), r"\1#"),
    # The exit code is the verdict's.
    ("verify, measuring: exit code", "^[045]$", "0, 4 or 5"),
    # What took how long in training, the rates that follow, and the load of other programs.
    ("train, measuring: stdout",
     of_key("training_time_ns|foreign_cores|measured_time_ns|measured_samples_per_second", NUMBER), r"\1#"),
    # The last two columns of the table are what was measured and that over what was predicted.
    ("train, measuring: stdout", r"^( ?\d+ [01]+ .+ \d+) \d+ (?:\d+\.\d{3}|-)$", r"\1 # #"),
    # The training time below the table is measured.
    ("train, measuring: stdout", r"(?<=, training time )[\d.]+(?= s)", "#"),
    # The system gives a process its memory, code of libraries included; what the allocator hands out beside a step's
    # tensors goes by when messages come and are gone.
    (r"train, measuring: (?:stdout|file .*/memory\.json)",
     of_key("process_peak_resident_bytes|allocator_peak_bytes", r"\d+"), r"\1#"),
    # When a checkpoint is on the disk, and so between which steps the log tells it, goes by the disk; what it holds
    # is shown by the run that goes on from it.
    (r"train, measuring: file .*/events\.jsonl", r'^\{"step":\d+,"kind":"checkpoint",.*\n', ""),
    # When a device came to hold so much is measured; how much it then held is compared.
    (r"train, measuring: file .*/memory\.json", r'"measured":\{[^[]*"curve":\[\S*?\]\]', without_times),
    # Times of steps, stretches of steps, checkpoints and transitions are measured; predictions of a transition follow
    # from what the first one took.
    (r"train, measuring: file .*/(?:trace|events)\.jsonl",
     of_key("time_ns|measured_ns|(?:predicted_)?(?:plan|move|start)_time_ns", r"\d+", ""), r"\1#"),
    # Starts and ends of a measured time line are measured, and so is which device's row comes first: its rows stand
    # in the order of their starts, of all devices together.
    (MEASURED_LINE, r",\d+,\d+$", ",#,#"),
    (MEASURED_LINE, r"\A(?s:.+)\Z", by_device),
]


def filter_parts(parts, places):
    """The parts as they are compared."""
    for title, text in parts:
        for name, path in places:
            text = text.replace(path, f"<{name}>")
        for where, match, put in FILTER:
            if re.fullmatch(where, title):
                text = re.sub(match, put, text, flags=re.MULTILINE)
        yield title, text
