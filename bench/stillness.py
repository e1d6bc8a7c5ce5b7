"""How long did a core of this machine stand still at a stretch? What waits on a core for that long is
not the program's doing: on virtual machines other guests have it. They may have most of it, too, in
slices that are too short to make anybody late.

A process of real-time priority on each core wakes every two milliseconds and times a little work. A
core stood still for as long as that woke late. While the work takes more than SLOW times what it did
at its fastest, the core stood still for the part of the time that is lost at such a speed, from one
waking to the next. Needs root.
"""
import multiprocessing
import os
import time

EVERY_S = 0.002
PRIORITY = 50
WORK = 2000  # numbers to be added up: some 40 us
SLOW = 5  # a busy neighbour on the same physical core, and cold caches, make it less


def work_s():
    begin = time.monotonic()
    sum(range(WORK))
    return time.monotonic() - begin


def watch(core, end):
    """Until the other end says something."""
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    longest = still = 0.0
    fastest, last = work_s(), time.monotonic()
    while not end.poll(EVERY_S):
        took = work_s()
        now = time.monotonic()
        fastest = min(fastest, took)
        if took > SLOW * fastest:
            still += (now - last) * (1 - fastest / took)
        else:
            still = now - last - EVERY_S - took
        longest, last = max(longest, still), now
    end.send(longest)


class Stillness:
    """Watches within a `with` block; then longest_s is known."""

    def __enter__(self):
        self.longest_s = 0.0
        self._watches = []
        for core in os.sched_getaffinity(0):
            own, end = multiprocessing.Pipe()
            process = multiprocessing.Process(target=watch, args=(core, end), daemon=True)
            process.start()
            self._watches.append((own, process))
        return self

    def __exit__(self, *_):
        for own, process in self._watches:
            own.send("end")
            self.longest_s = max(self.longest_s, own.recv())
            process.join()
