"""What a living process holds, from /proc, and whether it comes to hold more."""
import dataclasses
import os
import pathlib
import statistics
import time

LOOKS = 5  # at descriptors and threads: what is there for a moment is not held


@dataclasses.dataclass
class Held:
    descriptors: int
    threads: int
    resident: int  # KiB that are no file's

    @property
    def counts(self):
        return self.descriptors, self.threads


def look_at(pid):
    counts = []
    for look in range(LOOKS):
        if look:
            time.sleep(0.005)
        counts.append((len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task"))))
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return Held(min(fds for fds, _ in counts), min(threads for _, threads in counts), int(status.split("RssAnon:")[1].split()[0]))


def find_slope(points):
    """The slope of Theil and Sen through points (x, y), the median of the slopes of all pairs, with Sen's interval at 95 %."""
    slopes = sorted((y2 - y1) / (x2 - x1) for place, (x1, y1) in enumerate(points) for x2, y2 in points[place + 1:] if x2 != x1)
    n = len(points)
    # The number of rising less falling pairs has this variance where y does not depend on x (Kendall), and is nearly normal.
    spread = 1.96 * (n * (n - 1) * (2 * n + 5) / 18) ** 0.5
    low, high = max(0, round((len(slopes) - spread) / 2)), min(len(slopes) - 1, round((len(slopes) + spread) / 2))
    return statistics.median(slopes), slopes[low], slopes[high]


def tell_slope(slope):
    return "{:.0f} ({:.0f} to {:.0f}) B".format(*(1024 * value for value in slope))
