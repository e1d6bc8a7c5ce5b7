"""The implementations of all-reduce that bench/compare measures, each by a class.

A peer's `about` says what exactly is measured, or raises Missing. Its `run` all-reduces each size
(bytes, iterations) on a fabric, one worker per end, and returns a dict for each size: min_s and p50_s
over the iterations, and cpu_s, the CPU seconds of one all-reduce: of ours what its processes take,
of others what the whole machine does; None: too few to say. The time of one is that of its slowest
rank. It raises fabric.Failure when a sum is wrong.
"""
import json
import os
import shutil
import subprocess
import sys

from fabric import END_INTERFACE, HUB, HUB_INTERFACE, SUBNET, Failure
from measure import ROOT, cores, median

BENCH = os.path.join(ROOT, "bench")
PORT = 29500
GROUP = "239.77.0.1:29700"
FLOOR = os.path.join(ROOT, "build", "release", "bench", "gw_bench_floor")
SERVERS_MAX = 16  # of a job
THREADS_MAX = 4  # of a worker: more than links that we know need
VALUES = {1500: 352, 9000: 2048}  # of a packet of ours, by the MTU of the links
CPU_MIN_S = 0.1  # of all iterations together: ten ticks


class Missing(Exception):
    """A peer cannot run here: what is not there, and how to get it."""


def results(lines):
    """Of the lines of JSON that a peer's program prints."""
    for line in lines.splitlines():
        result = json.loads(line)
        times = result["times_s"]
        yield {
            "min_s": min(times),
            "p50_s": median(times),
            "cpu_s": resolved(result["cpu_s"], len(times)),
        }


def resolved(cpu_s, iterations):
    return cpu_s if cpu_s * iterations >= CPU_MIN_S else None


def arguments_of(sizes):
    return [f"{size}:{iterations}" for size, iterations in sizes]


class Tcp:
    """The yardstick: the bytes of a ring all-reduce, each end to the next, as one stream."""

    name = "tcp"
    is_yardstick = True
    program = [sys.executable, os.path.join(BENCH, "peer_tcp.py")]

    def about(self):
        return "plain TCP streams with the bytes of a ring, without steps and sums"

    def run(self, fabric, sizes, deadline_s):
        n = fabric.count
        found = []
        for size, iterations in sizes:
            sent = 2 * (n - 1) * size // n
            commands = []
            for end in range(n):
                link = ["--listen", fabric.address(end), "--to", fabric.address((end + 1) % n)]
                commands.append((end, [*self.program, *link, str(sent), str(iterations)]))
            found += results(fabric.run(self.name, commands, deadline_s))
        return found

    def stream_bps(self, fabric, deadline_s):
        """The rate of one stream between two ends."""
        size = int((fabric.rate_bps or 16e9) / 16)
        commands = [
            (1, [*self.program, "--listen", fabric.address(1), str(size), "3"]),
            (0, [*self.program, "--to", fabric.address(1), str(size), "3"]),
        ]
        result = next(results(fabric.run(self.name, commands, deadline_s)))
        return 8 * size / result["p50_s"]


class Gloo:
    """Gloo as PyTorch has it, with the algorithm that PyTorch takes: a ring in pieces."""

    name = "gloo"
    is_yardstick = False

    def __init__(self, python):
        self.pythons = [python] if python else [sys.executable, "/usr/bin/python3"]
        self.python = None

    def about(self):
        code = "import torch, torch.distributed as d; assert d.is_gloo_available()"
        for python in self.pythons:
            found = ask([python, "-c", f"{code}; print(torch.__version__)"])
            if found:
                self.python = python
                return f"PyTorch {found}"
        raise Missing(f"{self.pythons[0]} has no torch; pip install torch numpy, and --python PYTHON")

    def run(self, fabric, sizes, deadline_s):
        program = [self.python, os.path.join(BENCH, "peer_gloo.py")]
        commands = []
        for end in range(fabric.count):
            rank = [str(end), str(fabric.count), fabric.address(0)]
            commands.append((end, [*program, *rank, *arguments_of(sizes)]))
        return list(results(fabric.run(self.name, commands, deadline_s)))


class Mpi:
    """What the two MPIs share: the program, and starting one rank in each namespace."""

    is_yardstick = False
    packages = ""
    algorithm = ""
    ends = True  # by itself, when all is done

    def about(self):
        compiler, mpirun = f"mpicc.{self.name}", f"mpirun.{self.name}"
        for tool in (compiler, mpirun):
            if not shutil.which(tool):
                raise Missing(f"no {tool}; on Debian: apt-get install {self.packages}")
        source = os.path.join(BENCH, "peer_mpi.c")
        self.program = os.path.join(ROOT, "build", "bench", f"peer-{self.name}")
        os.makedirs(os.path.dirname(self.program), exist_ok=True)
        if subprocess.run([compiler, "-O2", "-Wall", source, "-o", self.program]).returncode != 0:
            raise Missing(f"{compiler} does not compile {source}; it needs {self.packages}")
        words = ask([mpirun, "--version"]).split()
        return f"{next(word for word in words if word[0].isdigit())}, {self.algorithm}"

    def run(self, fabric, sizes, deadline_s):
        addresses = [fabric.address(end) for end in range(fabric.count)]
        command = [f"mpirun.{self.name}", "-n", str(fabric.count)]
        command += self.options(fabric.launcher(), addresses)
        command += [self.program, *arguments_of(sizes)]
        lines = None if self.ends else len(sizes)
        return list(results(fabric.run(self.name, [(HUB, command)], deadline_s, lines)))


class OpenMpi(Mpi):
    name = "openmpi"
    packages = "openmpi-bin libopenmpi-dev"
    algorithm = "forced to its ring"

    def options(self, launcher, addresses):
        mca = {
            "plm_rsh_agent": launcher,
            "plm_rsh_no_tree_spawn": "1",
            "oob_tcp_if_include": SUBNET,
            "pml": "ob1",
            "btl": "tcp,self",
            "btl_tcp_if_include": SUBNET,
            "coll_tuned_use_dynamic_rules": "1",
            "coll_tuned_allreduce_algorithm": "4",
            # Ranks share cores, which it cannot know: each seems to be alone on its machine.
            "mpi_yield_when_idle": "1",
        }
        options = ["--allow-run-as-root", "--bind-to", "none"]
        options += ["--host", ",".join(f"{address}:1" for address in addresses)]
        for name, value in mca.items():
            options += ["--mca", name, value]
        return options


class Mpich(Mpi):
    name = "mpich"
    packages = "mpich libmpich-dev"
    algorithm = "its own choice of algorithm; it polls without pause"
    # With fewer cores than ranks, MPI_Finalize of Debian's 4.0.2 on UCX often never returns: some
    # ranks wait for the end of their connections, others no longer serve theirs.
    ends = False

    def options(self, launcher, addresses):
        options = ["-launcher", "rsh", "-launcher-exec", launcher, "-iface", HUB_INTERFACE]
        options += ["-hosts", ",".join(addresses)]
        # Debian builds it on UCX, others on libfabric.
        options += ["-genv", "UCX_TLS", "tcp,self", "-genv", "UCX_NET_DEVICES", END_INTERFACE]
        options += ["-genv", "FI_PROVIDER", "tcp", "-genv", "FI_TCP_IFACE", END_INTERFACE]
        return options


class Floor:
    """What the crossings of the kernel and the arithmetic of ours cost without any protocol."""

    is_yardstick = True

    def __init__(self, multicast):
        self.multicast = multicast
        self.name = f"floor{'+m' if multicast else ''}"

    def about(self):
        if not os.access(FLOOR, os.X_OK):
            raise Missing(f"not built: {FLOOR}")
        return f"bench/floor.c, sums {'to a multicast group' if self.multicast else 'to each'}"

    def run(self, fabric, sizes, deadline_s):
        return [self.bench(fabric, *size, deadline_s) for size in sizes]

    def bench(self, fabric, size, iterations, deadline_s):
        """The times are rank 0's."""
        where = f"{fabric.address(HUB)}:{PORT}"
        group = [GROUP] if self.multicast else []
        what = [str(fabric.count), str(size), str(VALUES[fabric.mtu])]
        fabric.start(HUB, [FLOOR, "hub", where, *what, *group])
        fabric.await_port(HUB, PORT)
        ranks = [(end, [FLOOR, "worker", where, str(end), *what, str(iterations), *group])
                 for end in range(fabric.count)]  # fmt: skip
        return next(results(fabric.run(self.name, ranks, deadline_s)))


class Gradwire:
    """Ours: whatever aggregates is a daemon in the hub, or ("joined") in rank 0's process. Results are
    multicast, as by default, or ("alone") not."""

    is_yardstick = False

    def __init__(self, binary, via, how=""):
        self.binary = binary
        self.via = via
        self.how = how
        self.name = f"gradwire {via} {how}".rstrip()

    def about(self):
        if ask([self.binary, "bench", "--help"]) is None:
            raise Missing(f"not built: {self.binary} has no command bench")
        return ask([self.binary, "version"])

    def run(self, fabric, sizes, deadline_s):
        found = []
        for size, iterations in sizes:
            result, servers_s = self.bench(fabric, size, iterations + 1, deadline_s)
            if servers_s:  # what a job takes to come and go is in a run with one iteration, too
                servers_s -= self.bench(fabric, size, 1, deadline_s)[1]
            ranks_s = result["cpu_s_per_gb"] * size / 1e9
            found.append({
                "min_s": result["time_ms"]["min"] / 1e3,
                "p50_s": result["time_ms"]["p50"] / 1e3,
                "cpu_s": resolved(ranks_s + servers_s / iterations, iterations),
            })
        return found

    def bench(self, fabric, size, iterations, deadline_s):
        """What rank 0 prints, and the CPU seconds of all servers since they listen."""
        command = self.command(fabric, self.via, size, iterations, fabric.count)
        if "--join" not in command:
            command += ["--server", self.start_server(fabric)]
        ranks = [(end, [*command, "--rank", str(end)]) for end in range(fabric.count)]
        begin_s, servers_s = fabric.cpu_s(HUB), []
        result = json.loads(fabric.run(self.name, ranks, deadline_s,
                                       last=lambda: servers_s.append(fabric.cpu_s(HUB))))
        if result["max_abs_error"] > result["exact_bound"]:
            raise Failure(f"{self.name}: sums are off by {result['max_abs_error']}")
        return result, servers_s[0] - begin_s

    def command(self, fabric, via, size, iterations, world):
        command = [self.binary, "bench", "--via", via, "--json", "--size", str(size)]
        command += ["--iters", str(iterations), "--world", str(world)]
        command += ["--values", str(VALUES[fabric.mtu])]
        is_flow = via in ("ring", "send")
        beside = 0 if is_flow or self.how == "joined" else self.servers(fabric)
        threads = min(THREADS_MAX, (cores() - beside) // fabric.count)
        if threads > 1:
            command += ["--threads", str(threads)]
        if is_flow or self.how == "joined":
            command += ["--join", f"{fabric.address(0)}:{PORT}"]
        if is_flow and fabric.rate_bps:
            command += ["--rate", f"{fabric.rate_bps}bps"]
        return command

    def stream_bps(self, fabric, deadline_s):
        """The rate of messages from one end to another."""
        size = int((fabric.rate_bps or 16e9) / 16)
        command = self.command(fabric, "send", size, 9, 2)
        ranks = [(end, [*command, "--rank", str(end)]) for end in (0, 1)]
        result = json.loads(fabric.run("gradwire send", ranks, deadline_s))
        return 8 * size / (result["time_ms"]["p50"] / 1e3)

    def servers(self, fabric):
        """As many in a row as there are workers, and cores beside theirs; one if there are none."""
        return max(1, min(fabric.count, SERVERS_MAX, cores() - fabric.count))

    def start_server(self, fabric):
        alone = ["multicast: none"] if self.how == "alone" else []
        return fabric.start_server(self.binary, PORT, f"values: {VALUES[fabric.mtu]}", *alone,
                                   count=self.servers(fabric))


def ask(command):
    """What a command prints, or None if it fails or does not exist."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
