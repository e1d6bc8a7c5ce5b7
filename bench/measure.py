"""What the scripts of this folder share: running a command and measuring it from outside.

A number that is quoted is the median over repetitions in which the things compared take turns, so
that a disturbance of the machine hits all of them alike.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BINARY = os.path.join(ROOT, "build", "release", "gradwire")
CORES = "GRADWIRE_BENCH_CORES"  # variable of the environment


def die(message, status=1):
    print(f"{os.path.basename(sys.argv[0])}: {message}", file=sys.stderr)
    sys.exit(status)


def failure(done):
    """Why a command failed that subprocess.run() has run: its last line, or how it ended."""
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"ended with exit status {done.returncode}"


def measure(command):
    """Runs a command that prints one JSON object; returns it with what the process used.

    process_s is wall time from start to end, cpu_s that of all threads, rss_mb the peak.
    """
    with tempfile.TemporaryFile("w+") as out:
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=out, cwd=ROOT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - begin
        out.seek(0)
        text = out.read()
    if process.returncode != 0:
        die(f"exit status {process.returncode}: {' '.join(command)}\n{text}".rstrip())
    result = json.loads(text)
    result["process_s"] = wall
    result["cpu_s"] = usage.ru_utime + usage.ru_stime
    result["rss_mb"] = usage.ru_maxrss * 1024 / 1e6
    return result


def gradwire(binary, scenario, settings=(), threads=1):
    """Measures one simulation on one seed. All flows must complete."""
    command = [binary, "sim", scenario, "--json", f"--threads={threads}"]
    for setting in settings:
        command += ["--set", setting]
    result = measure(command)
    if result["completed"] != result["flows"]:
        die(f"{result['completed']} of {result['flows']} flows completed: {' '.join(command)}")
    return result


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def machine():
    """One line about where the numbers come from."""
    model = "unknown CPU"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return f"{model}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start"


def cores():
    """How many there are, or seem to be (bench/more-cores)."""
    return int(os.environ.get(CORES, os.cpu_count()))


def machine_cpu_s():
    """CPU seconds of the whole machine since boot, without idle, I/O wait and stolen time, and without
    what programs of a lower priority (nice) compute meanwhile."""
    with open("/proc/stat", encoding="utf-8") as file:
        user, _, system, _, _, irq, softirq = map(int, file.readline().split()[1:8])
    return (user + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def have_core(core):
    """This process runs on that core alone, and before all others there. Needs root."""
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))


def table(header, rows):
    """Text columns: the first to the left, the others to the right; "-" for None."""
    rows = [["-" if cell is None else str(cell) for cell in row] for row in [header] + rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  ".join(cells).rstrip())


def release_binary(path):
    """`path`, or else the release build, brought up to date."""
    if not path:
        if subprocess.run([os.path.join(ROOT, "run"), "build"], stdout=sys.stderr).returncode != 0:
            die("./run build failed")
        path = BINARY
    if not os.access(path, os.X_OK):
        die(f"{path}: no such program", 2)
    return os.path.abspath(path)


def arguments(description, repetitions=5):
    """The options that all scripts have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--repetitions", type=positive, default=repetitions, metavar="N", help=f"default: {repetitions}"
    )
    parser.add_argument("--binary", help="another gradwire than the release build of this tree")
    return parser


def positive(text):
    value = int(text)
    if value < 1:
        raise ValueError
    return value
