#!/usr/bin/env python3
"""Every call of the package, with ranks that are threads: results, memory, handles and errors.
Called with the path of the program, as all are."""

import array
import ctypes
import gc
import threading
import unittest
import unittest.mock
import weakref

import numpy as np
from ports import free_port
from ranks import in_threads

import gradwire

WORLD = 3
TYPES = ("float32", "float16", "float64", "int32", "int64", "uint8")
OPS = {
    "sum": lambda ranks: ranks.sum(0),
    "average": lambda ranks: ranks.mean(0),
    "min": lambda ranks: ranks.min(0),
    "max": lambda ranks: ranks.max(0),
    "product": lambda ranks: ranks.prod(0),
}


def values(kind, count=500):
    """Of all ranks: small enough that every type has every result exactly, and every third."""
    places = np.arange(WORLD * count).reshape(WORLD, count)
    return (3 * (places * 7 % 2 + 1)).astype(kind)


class Tensor:
    """Memory that is known by DLPack alone, as type `code` of so many bits."""

    def __init__(self, memory, code=None, device=1):
        self.memory = memory
        self.code = code
        self.device = device

    def __dlpack_device__(self):
        return (self.device, 0)

    def __dlpack__(self):
        capsule = self.memory.__dlpack__()
        if self.code is not None:
            pointer = ctypes.pythonapi.PyCapsule_GetPointer
            pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            after_ndim = ctypes.sizeof(ctypes.c_void_p) + 3 * ctypes.sizeof(ctypes.c_int32)
            ctypes.c_uint8.from_address(
                pointer(capsule, b"dltensor") + after_ndim
            ).value = self.code
        return capsule


class CallsTest(unittest.TestCase):
    def test_reductions__are_those_of_numpy(self):
        def body(job):
            for kind in TYPES:
                for op, expected in OPS.items():
                    if op == "average" and not kind.startswith("float"):
                        continue
                    given = values(kind)
                    every = expected(given).astype(kind)
                    for via in ("ina", "ps", "ring"):
                        out = np.empty_like(every)
                        job.allreduce(given[job.rank], out, op=op, via=via)
                        np.testing.assert_array_equal(out, every)
                    own = given[job.rank].copy()
                    job.allreduce(own, op=op)
                    np.testing.assert_array_equal(own, every)
                    own = given[job.rank].copy()
                    job.reduce(own, root=1, op=op)
                    np.testing.assert_array_equal(own, every if job.rank == 1 else given[job.rank])
                    wide = np.tile(given[job.rank], WORLD)
                    part = np.empty_like(every)
                    job.reduce_scatter(wide, part, op=op)
                    np.testing.assert_array_equal(part, every)
            return job.stats()

        for stats in in_threads(WORLD, body):
            self.assertGreater(stats["fragments"], 0)
            self.assertGreater(stats["rerouted"], 0)

    def test_what_is_only_moved__may_be_of_any_type(self):
        def body(job):
            job.barrier()
            for given in (values("float32"), values("complex64"), values("bool"), values(">i2")):
                own = given[job.rank].copy()
                job.broadcast(own, root=2)
                np.testing.assert_array_equal(own, given[2])
                every = np.empty_like(given)
                job.allgather(given[job.rank], every)
                np.testing.assert_array_equal(every, given)
            to, source = (job.rank + 1) % WORLD, (job.rank - 1) % WORLD
            room = bytearray(10)
            sent = job.start_send(b"from %d" % job.rank, to, tag=7)
            job.receive(room, source, tag=7)
            sent.wait()
            self.assertEqual(room, b"from %d\0\0\0\0" % source)

        in_threads(WORLD, body)

    def test_pointers__are_not_moved(self):
        class Node(ctypes.Structure):
            _fields_ = [("value", ctypes.c_int), ("next", ctypes.POINTER(ctypes.c_int))]

        wrong = (
            np.array([{"rank": 1}, "text"], dtype=object),
            np.zeros(2, [("number", "i4"), ("nested", [("thing", "O")])]),
            (ctypes.py_object * 1)("text"),
            (ctypes.c_char_p * 1)(b"text"),
            (ctypes.c_wchar_p * 1)("text"),
            (ctypes.c_void_p * 1)(1),
            (ctypes.CFUNCTYPE(None) * 1)(),
            Node(),
        )
        named = np.zeros(2, [("O", "i4"), ("zP&", "c16"), ("X", "u1", (2, 3))])

        def body(job):
            other = 1 - job.rank
            for data in wrong:
                for call in (
                    job.broadcast,
                    lambda data: job.allgather(data, data),
                    lambda data: job.send(data, other),
                    lambda data: job.receive(data, other),
                    lambda data: job.push(1, data),
                    lambda data: job.pull(1, data),
                    job.allreduce,
                    job.fragments,
                ):
                    with self.assertRaisesRegex(
                        gradwire.InvalidError, "data has elements '.*Python objects, or pointers"
                    ):
                        call(data)
            own = named.copy()
            own["O"] = job.rank
            job.broadcast(own, root=1)
            np.testing.assert_array_equal(own["O"], 1)

        in_threads(2, body)

    def test_values__are_pushed_and_pulled(self):
        def body(job):
            job.push(5, np.full(1000, job.rank + 1, "f4"))
            job.barrier()
            value = np.empty(1000, "f4")
            job.pull(5, value)
            np.testing.assert_array_equal(value, 6)
            with self.assertRaisesRegex(gradwire.InvalidError, f"^rank {job.rank}: .*12"):
                job.pull(12, value)
            with self.assertRaises(ValueError):
                job.push(5, np.zeros(999, "f4"))
            job.barrier()

        in_threads(WORLD, body)

    def test_started_calls__are_more_than_fit(self):
        def body(job):
            rows = np.full((200, 10), job.rank, "i4")
            calls = [job.start_allreduce(row) for row in rows]
            for call in reversed(calls):
                call.wait()
                call.wait()
                self.assertTrue(call.done())
            np.testing.assert_array_equal(rows, 3)

        in_threads(WORLD, body)

    def test_threads__share_a_job(self):
        def body(job):
            other = 1 - job.rank
            room = bytearray(1)
            receiver = threading.Thread(target=lambda: job.receive(room, other, tag=1))
            receiver.start()
            with self.assertRaises(gradwire.InvalidError):
                job.start_send(b"", other)
            call = job.start_receive(bytearray(1), other, tag=2)
            self.assertFalse(call.done())
            job.send(b"x", other, tag=1)
            receiver.join()
            job.send(b"y", other, tag=2)
            call.wait()
            self.assertEqual(room, b"x")
            self.assertGreaterEqual(job.fileno(), 0)

        in_threads(2, body)

    def test_memory__comes_in_many_forms(self):
        def body(job):
            for made in (
                lambda: array.array("f", [1, 2]),
                lambda: memoryview(array.array("d", [1, 2])),
                lambda: np.array([[1], [2]], "<i8"),
                lambda: (ctypes.c_int32 * 2)(1, 2),
            ):
                memory = made()
                job.allreduce(memory)
                np.testing.assert_array_equal(np.asarray(memory).ravel(), [2, 4])
            numbers = np.array([1, 2], "f4")
            job.allreduce(Tensor(numbers))
            np.testing.assert_array_equal(numbers, [2, 4])
            halves = np.array([0x3F80, 0x4000], "u2")  # 1 and 2, as bfloat16
            job.allreduce(Tensor(halves, code=4))
            np.testing.assert_array_equal(halves, [0x4000, 0x4080])
            for empty in (np.empty(0, "f4"), bytearray()):
                job.allreduce(empty)
                self.assertTrue(job.start_broadcast(empty).done())

        in_threads(2, body)

    def test_memory__that_does_not_do_is_refused(self):
        grid = np.zeros((4, 4), "f4")
        fixed = grid.copy()
        fixed.flags.writeable = False
        wrong = {
            "read-only": lambda job: job.allreduce(fixed),
            "data is read-only": lambda job: job.receive(b"abc", 0),
            "not contiguous": lambda job: job.allreduce(grid[:, 1]),
            "is not contiguous: copy": lambda job: job.push(1, Tensor(grid.T)),
            "elements 'g'": lambda job: job.allreduce(np.zeros(3, "g")),
            "elements '>f'": lambda job: job.allreduce(np.zeros(3, ">f4")),
            "out has 15 elements of float32: 16 of": lambda job: job.allreduce(
                grid, grid.ravel()[:15]
            ),
            "16 of float32 are": lambda job: job.reduce(grid, grid.astype("i4"), root=job.rank),
            "out has 16 .*: 32 of": lambda job: job.allgather(grid, grid),
            "data has 4 .*: 32 of": lambda job: job.reduce_scatter(grid[0], grid),
            "list: neither": lambda job: job.allreduce([1, 2]),
            "data is ndarray: DLPack gives no access": lambda job: job.broadcast(
                np.zeros(4, "M8[s]")
            ),
            "device 2": lambda job: job.allreduce(Tensor(grid, device=2)),
            "worth is of 2 fragments: .* 1": lambda job: job.allreduce(grid, worth=[1, 2]),
            "importance is 'means': of a worth it": lambda job: job.allreduce(
                grid, worth=[1], importance="means"
            ),
            "worth is int: a seq": lambda job: job.allreduce(grid, worth=5),
            "worth of fragment 0 is no number: .*None": lambda job: job.push(1, grid, worth=[None]),
            "worth of fragment 0 is no .*str": lambda job: job.allreduce(grid, worth=["1"]),
            "parts is int: a Parts": lambda job: job.allreduce(grid, parts=5),
            "bound is 0.8": lambda job: job.allreduce(grid[:0], bound=0.8),
            "op is .mean.: one of sum, av": lambda job: job.allreduce(grid, op="mean"),
            r"op is \['sum'\]: one of": lambda job: job.allreduce(grid, op=["sum"]),
            "via is 'road': one of ina": lambda job: job.allreduce(grid, via="road"),
            "bound is 0.7": lambda job: job.allreduce(grid, bound=0.7),
            "bound is 1.5e-05: expected 0, or": lambda job: job.allreduce(grid, bound=1.5e-5),
            "bound_pull is 1e-09": lambda job: job.allreduce(grid, bound_pull=1e-9),
            "bound is -0.1": lambda job: job.allreduce(grid, bound=-0.1),
            "layer is -1": lambda job: job.allreduce(grid, layer=-1),
            "send: tag is -1: 0 to 16777215": lambda job: job.send(grid, 1, tag=-1),
            "receive: tag is 16777216: 0 to": lambda job: job.receive(grid, 1, tag=1 << 24),
            "send: to is str: an integer is": lambda job: job.send(grid, "1"),
            "receive: source is 2: 0 to 1": lambda job: job.receive(grid, 2),
            "root is 2": lambda job: job.broadcast(grid, root=2),
            "reduce: root is NoneType: an int": lambda job: job.reduce(grid, root=None),
            "push: key is str: an integer is": lambda job: job.push("a", grid),
            "pull: key is -1: 0 to 18446744073709551615": lambda job: job.pull(-1, grid),
        }

        def body(job):
            for text, call in wrong.items():
                with self.assertRaisesRegex(gradwire.InvalidError, text):
                    call(job)
            with self.assertRaisesRegex(TypeError, "no option 'bond'.* bound,"):
                job.allreduce(grid, bond=0.1)
            job.allreduce(grid)

        in_threads(2, body)

    def test_vias__of_servers_that_differ_name_a_rank(self):
        def body(job):
            text = "call or message of rank [01] is of another .* via"
            with self.assertRaisesRegex(gradwire.PeerError, text):
                job.allreduce(np.zeros(9, "f4"), via=("ina", "ps")[job.rank])

        in_threads(2, body, deadline_ms=4000)

    def test_memory__is_kept_until_the_call_has_ended(self):
        def body(job):
            room = np.zeros(4, "f4")
            alive = weakref.ref(room)
            call = job.start_receive(room, 1 - job.rank)
            room = None
            gc.collect()
            self.assertIsNotNone(alive())
            job.send(np.ones(4, "f4"), 1 - job.rank)
            call.wait()
            self.assertIsNone(alive())

        in_threads(2, body)

    def test_memory__in_a_cycle_is_given_back_first(self):
        def body(job):
            def fails():
                view = memoryview(bytearray(8))
                try:
                    job.broadcast(view, root=2)
                except gradwire.InvalidError as error:
                    self.kept = error  # its traceback has the view, and what was lent of it
                    error.itself = error

            fails()
            self.kept = None
            gc.collect()

        in_threads(1, body)

    def test_calls_with_a_bound__tell_what_is_missing(self):
        def body(job):
            numbers = np.ones(3520, "f4")
            self.assertEqual(job.fragments(numbers), 10)
            parts = gradwire.Parts()
            job.allreduce(
                numbers, via="ring", bound=0.5, bound_pull=0.5, layer=1, layers=2, parts=parts,
                importance="means", important_first=True,
            )  # fmt: skip
            self.assertEqual((parts.fragment, parts.count), (352, 10))
            self.assertEqual(parts.arrived.count(False), parts.missing)
            there = np.repeat(parts.contributors, 352)
            np.testing.assert_array_equal(numbers, there)
            kept = np.ones(3520, "f4")
            job.allreduce(kept, via="ps", bound_pull=0.5, keeps_own=True, parts=parts)
            np.testing.assert_array_equal(kept, np.repeat(parts.contributors, 352))
            job.allreduce(numbers, worth=list(range(10)), bound=0.1)
            wide, part = np.ones(7040, "f4"), np.empty(3520, "f4")
            job.reduce_scatter(wide, part, worth=range(20), parts=parts)
            self.assertEqual(parts.contributors, [2] * 10)
            job.allgather(part, wide, parts=parts)
            self.assertEqual(parts.arrived, [True] * 20)

        in_threads(2, body)

    def test_parts__are_of_one_call_at_a_time(self):
        def body(job):
            other, parts, room = 1 - job.rank, gradwire.Parts(), bytearray(3000)

            def told():
                return parts.fragment, parts.count, parts.missing, parts.arrived, parts.contributors

            call = job.start_receive(room, other, bound=0.1, parts=parts)
            with self.assertRaisesRegex(gradwire.InvalidError, "parts is of another call, which"):
                job.start_receive(bytearray(1), other, tag=1, parts=parts)
            self.assertEqual(told(), (0, 0, 0, [], []))
            gc.collect()
            job.send(b"x" * len(room), other)
            call.wait()
            self.assertEqual(told(), (1408, 3, 0, [True] * 3, [1] * 3))
            for wrong in ({"bound": 0.9}, {"bound": "much"}, {"op": "average"}):
                with self.assertRaises(gradwire.InvalidError):
                    job.allreduce(np.ones(7, "i4"), parts=parts, **wrong)
            self.assertEqual(told(), (1408, 3, 0, [True] * 3, [1] * 3))
            job.allreduce(np.empty(0, "i4"), parts=parts)
            self.assertEqual(told(), (352, 0, 0, [], []))
            job.allreduce(np.ones(7, "i4"), parts=parts)
            self.assertEqual((parts.count, parts.contributors), (1, [2]))
            late = job.start_receive(room, other, tag=2, parts=parts)
            job.barrier()
            job.close()
            with self.assertRaises(gradwire.Error):
                late.wait()
            self.assertEqual((parts.count, parts.contributors), (1, [2]))
            return parts

        parts, _ = in_threads(2, body)
        in_threads(1, lambda job: job.allreduce(np.ones(1, "f4"), parts=parts))
        self.assertEqual((parts.count, parts.contributors), (1, [1]))

    def test_worth__is_numbers_before_the_call_starts(self):
        numbers = np.ones(3520, "f4")

        class Worth(list):
            def __getitem__(self, index):
                raise LookupError(f"no fragment {index}")

        class Interrupted(gradwire.parts.Worth):
            def __init__(self, worth, count):
                super().__init__(worth, count)
                self.function = gradwire.native.ffi.callback(
                    "gradwire_worth *", self.interrupts, onerror=self._note
                )

            def interrupts(self, *_):
                raise KeyboardInterrupt

        def body(job):
            for kind in ("f4", "i8", "?"):
                job.allreduce(numbers.copy(), worth=np.arange(10).astype(kind), bound=0.1)
            with self.assertRaisesRegex(LookupError, "no fragment 0"):
                job.allreduce(numbers.copy(), worth=Worth(range(10)))
            job.allreduce(numbers.copy(), bound=0.1)

        patch = unittest.mock.patch("gradwire.job.Worth", Interrupted)
        with patch, self.assertRaises(KeyboardInterrupt):
            in_threads(1, lambda job: job.push(1, numbers, worth=[1] * 10))
        in_threads(1, body)

    def test_failure__ends_the_job(self):
        def body(job):
            with self.assertRaisesRegex(gradwire.ResultOverflowError, f"^rank {job.rank}: "):
                job.allreduce(np.full(3, 2**31 - 1, "i4"))
            with self.assertRaises(gradwire.ClosedError):
                job.barrier()

        in_threads(2, body)

    def test_closed_job__says_so(self):
        def body(job):
            job.barrier()
            call = job.start_receive(bytearray(1), 1 - job.rank)
            job.close()
            job.close()
            for late in (
                call.wait,
                job.barrier,
                job.stats,
                job.fileno,
                lambda: job.allreduce(np.empty(0, "f4")),
            ):
                with self.assertRaisesRegex(gradwire.ClosedError, "was closed"):
                    late()

        in_threads(2, body)

    def test_options_of_a_job__are_checked(self):
        for text, options in {
            "rank 0: world is 0": {"world": 0},
            "via is 'road'": {"via": "road"},
            "join is 4: ": {"join": 4},
            r"job is 'a\\x00b': a text without": {"job": "a\0b"},
            "rank is 'one'": {"rank": "one"},
            "congestion": {"cc": "none of them"},
        }.items():
            with self.assertRaisesRegex(gradwire.InvalidError, text):
                gradwire.Job(**options)
        for text, environment in {
            "^RANK is x, world is 2: ": {"RANK": "x", "WORLD_SIZE": "2"},
            "^rank 1: RANK is set, WORLD_SIZE is not$": {"RANK": "1", "WORLD_SIZE": ""},
            "^WORLD_SIZE is set, RANK is not$": {"RANK": "", "WORLD_SIZE": "2"},
        }.items():
            with (
                unittest.mock.patch.dict("os.environ", environment, clear=True),
                self.assertRaisesRegex(gradwire.InvalidError, text),
            ):
                gradwire.Job(join="127.0.0.1:4790")
        with self.assertRaisesRegex(TypeError, "'ranks'; there are job, .* switch, bind"):
            gradwire.Job(ranks=3)
        with self.assertRaisesRegex(gradwire.TimedOutError, "^rank 0: .* rank 1 for one has not"):
            gradwire.Job(world=2, join=f"127.0.0.1:{free_port()}", deadline_ms=100)


if __name__ == "__main__":
    unittest.main()
