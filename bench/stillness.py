"""How long did a core of this machine stand still? What waits on a core for that long is not the
program's doing: on virtual machines other guests have it.

A process of real-time priority on each core wakes every two milliseconds, and keeps the longest time
by which it was late. Needs root.
"""
import multiprocessing
import os
import time

EVERY_S = 0.002
PRIORITY = 50


def watch(core, end):
    """Until the other end says something."""
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    longest, last = 0.0, time.monotonic()
    while not end.poll(EVERY_S):
        now = time.monotonic()
        longest, last = max(longest, now - last - EVERY_S), now
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
