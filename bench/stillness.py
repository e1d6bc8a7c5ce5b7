"""How long did the cores of this machine stand still? What waits on a core for that long is not the
program's doing: on virtual machines other guests have it. They may have most of it, too, in slices
that are too short to make anybody late.

A process of real-time priority on each core wakes every two milliseconds and times a little work. A
core stood still for as long as that woke late; and when the work took more than SLOW times what it
did at its fastest, for the part of the time since the last waking that is lost at such a speed.
Needs root.
"""
import multiprocessing
import os
import time

from measure import have_core

EVERY_S = 0.002
GRAIN_S = 0.001  # less is nothing: a waking takes some of it anyway
WORK = 2000  # numbers to be added up: some 40 us
SLOW = 5  # a busy neighbour on the same physical core, and cold caches, make it less


def work_s():
    begin = time.monotonic()
    sum(range(WORK))
    return time.monotonic() - begin


def watch(core, end):
    """Until the other end says something; then says when the core stood still, from and until."""
    have_core(core)
    stills = []
    fastest, last = work_s(), time.monotonic()
    while not end.poll(EVERY_S):
        took = work_s()
        now = time.monotonic()
        fastest = min(fastest, took)
        if took > SLOW * fastest:
            still = (now - last) * (1 - fastest / took)
        else:
            still = now - last - EVERY_S - took
        if still > GRAIN_S:
            stills.append((now - still, now))
        last = now
    end.send(stills)


def merged(stills):
    """The times when any core stood still, in order: of several at once all wait once."""
    times = []
    for begin, end in sorted(stills):
        if times and begin < times[-1][1]:
            times[-1] = (times[-1][0], max(end, times[-1][1]))
        else:
            times.append((begin, end))
    return times


def most_within(stills, span_s):
    """The most that some core stood still within a span of time: who waits for each other may wait
    for one core after another."""
    most = within = 0.0
    first = 0
    for begin, end in stills:
        within += end - begin
        while stills[first][1] < end - span_s:
            within -= stills[first][1] - stills[first][0]
            first += 1
        most = max(most, within)
    return most


class Stillness:
    """Watches within a `with` block; then `stills` has the times when a core stood still, from and
    until, in order."""

    def __enter__(self):
        self._watches = []
        for core in os.sched_getaffinity(0):
            own, end = multiprocessing.Pipe()
            process = multiprocessing.Process(target=watch, args=(core, end), daemon=True)
            process.start()
            self._watches.append((own, process))
        return self

    def __exit__(self, *_):
        stills = []
        for own, process in self._watches:
            own.send("end")
            stills += own.recv()
            process.join()
        self.stills = merged(stills)
