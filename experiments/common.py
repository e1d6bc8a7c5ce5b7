"""What the experiments share: options, runs on all cores with progress, CSV files and plots."""
import argparse
import csv
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path

import tasks
import torch

ROOT = Path(__file__).resolve().parent.parent


def die(message, status=2):
    print(f"{Path(sys.argv[0]).name}: {message}", file=sys.stderr)
    sys.exit(status)


def parser(doc, seeds=3):
    """Options of all: where results go, and how many runs."""
    found = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    name = Path(sys.argv[0]).name
    add = found.add_argument
    add("--out", type=Path, default=ROOT / "build" / "experiments", metavar="DIR",
        help=f"for {name}.csv and {name}.svg; default: build/experiments")
    add("--seeds", type=int, default=seeds, metavar="N", help=f"runs of each; default: {seeds}")
    add("--no-plot", action="store_true", help="no matplotlib is needed then")
    return found


def begin(args, names=()):
    """Looks whether what is needed is there, these tasks among it, before hours are spent."""
    if args.seeds < 1:
        die(f"--seeds {args.seeds}: expected at least 1")
    for name in names:
        try:
            tasks.find(name)
        except (ValueError, tasks.MissingData) as error:
            die(str(error))
    if not args.no_plot:
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            die("plots need matplotlib: apt-get install python3-matplotlib, or --no-plot")
    try:
        args.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        die(f"--out {args.out}: {error.strerror}")


def alone():
    """Of each process: it has a core, and leaves Ctrl-C to its parent."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def spread(function, items):
    """The results for all items, in their order, computed by as many processes as there are cores."""
    torch.set_num_threads(1)  # or a forked process waits for threads that it does not have
    results, start = [], time.monotonic()
    try:
        with multiprocessing.get_context("fork").Pool(os.cpu_count(), alone) as pool:
            for result in pool.imap(function, items):
                results.append(result)
                spent = time.monotonic() - start
                left = spent / len(results) * (len(items) - len(results))
                print(f"\r{len(results)} of {len(items)}, {spent:.0f} s, about {left:.0f} s left  ",
                      end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        die("interrupted", 130)
    print(file=sys.stderr)
    return results


def write_csv(args, header, rows, suffix=""):
    path = args.out / f"{Path(sys.argv[0]).name}{suffix}.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(header)
        out.writerows(rows)
    print(f"wrote {path}")


def write_plot(args, panels, x_label, y_label):
    """Panels by name, in each curves by name, each a list of points; where infinite, they end."""
    if args.no_plot:
        return
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "gradwire"
    from matplotlib import pyplot

    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    size = (4 * columns, 3.2 * rows)
    figure, places = pyplot.subplots(rows, columns, figsize=size, squeeze=False)
    for place in list(places.flat)[len(panels):]:
        place.axis("off")
    for place, (name, curves) in zip(places.flat, panels.items()):
        for label, points in curves.items():
            place.plot(*zip(*points), marker=".", label=label)
        place.set(title=name, xlabel=x_label, ylabel=y_label)
        place.grid(alpha=0.3)
        if len(curves) > 1:
            place.legend(fontsize="small")
    figure.tight_layout()
    path = args.out / f"{Path(sys.argv[0]).name}.svg"
    figure.savefig(path, metadata={"Date": None})
    print(f"wrote {path}")


def table(header, rows):
    """Markdown."""
    print("\n| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print()
