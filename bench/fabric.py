"""A network of real sockets on one machine: network namespaces, each with one link to a bridge.

Each end is a namespace with an interface `eth0`; the bridge is in one more, the hub, which has an
address too: what runs in the hub sits in the switch, behind no link of its own. With a rate, both
directions of each link are shaped by the kernel's token bucket (tbf), the same for whoever uses it.

All names carry this process's id. Leaving the `with` block kills what still runs in the namespaces and
removes them, and links and bridge with them; so does any exception, and a signal that becomes one.
"""
import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time

from measure import die

NETWORK = "10.77.0"
SUBNET = f"{NETWORK}.0/24"
ENDS_MAX = 250
HUB = "hub"
HUB_INTERFACE = "bridge0"
END_INTERFACE = "eth0"

# TCP and UDP hand over packets of up to 64 KB, to be cut later (GSO), and tbf counts the headers of
# every piece: 68 KB. What exceeds the burst tbf cuts itself, which costs CPU and, with two-way
# traffic, up to half of the rate. A burst must also cover a late timer.
BURST_BYTES_MIN = 72 << 10
BURST_S = 500e-6
QUEUE_BYTES_MIN = 1 << 20


class Failure(Exception):
    """One line about a process that ended badly or not in time."""


def within(namespace, *command):
    """The command that runs `command` in a namespace. (`ip netns exec` would also mount, which a
    chroot and many containers do not let it.)"""
    return ["nsenter", f"--net=/run/netns/{namespace}", *command]


def obstacle():
    """Why namespaces cannot be made here; None: they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for tool, package in [("ip", "iproute2"), ("tc", "iproute2"), ("nsenter", "util-linux")]:
        if not shutil.which(tool):
            return f"{tool} is not installed; on Debian: apt-get install {package}"
    name = f"gwcheck{os.getpid()}"
    try:
        setup("ip", "netns", "add", name)
        setup(*within(name, "ip", "link", "set", "lo", "up"))
        return None
    except Failure as failure:
        return str(failure)
    finally:
        subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)


def require():
    """Ends the program unless namespaces can be made here."""
    why = obstacle()
    if why:
        die(why, 2)


def setup(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise Failure(f"{' '.join(command)}: {result.stderr.strip()}")


def shaping(rate_bps):
    """The arguments of tc that shape a link to a rate."""
    burst = max(BURST_BYTES_MIN, int(rate_bps / 8 * BURST_S))
    limit = max(QUEUE_BYTES_MIN, 4 * burst)
    return ["tbf", "rate", f"{rate_bps}bit", "burst", str(burst), "limit", str(limit)]


def losing(part):
    """A classic BPF program that drops this part of all packets: those whose random number (the
    extension SKF_AD_RANDOM) is small. It returns TC_ACT_OK or TC_ACT_SHOT."""
    random = 0xFFFFF000 + 56
    return f"4,32 0 0 {random},53 0 1 {int(part * 2**32)},6 0 0 0,6 0 0 2"


class Fabric:
    """`count` ends, numbered from 0. `rate_bps` is that of a link in each direction, or None; `loss`
    the part of the packets to each end that get lost on its link; `mtu` that of all links."""

    def __init__(self, count, rate_bps, loss=0, mtu=1500):
        self.prefix = f"gwcompare{os.getpid()}-"
        self.count = count
        self.rate_bps = rate_bps
        self.loss = loss
        self.mtu = mtu
        self.folder = tempfile.mkdtemp(prefix=self.prefix)
        self.namespaces = []
        self.processes = []
        self.daemons = []

    def __enter__(self):
        try:
            self.open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def open(self):
        self.add_namespace(HUB)
        hub = within(self.namespace(HUB), "ip")
        setup(*hub, "link", "add", "name", HUB_INTERFACE, "address", self.hardware_address(HUB),
              "mtu", str(self.mtu), "type", "bridge")  # fmt: skip
        setup(*hub, "addr", "add", f"{self.address(HUB)}/24", "dev", HUB_INTERFACE)
        setup(*hub, "link", "set", HUB_INTERFACE, "up")
        for end in range(self.count):
            self.add_end(end)

    def add_namespace(self, end):
        self.namespaces.append(self.namespace(end))  # removed even if half made
        setup("ip", "netns", "add", self.namespace(end))
        setup(*within(self.namespace(end), "ip", "link", "set", "lo", "up"))

    def add_end(self, number):
        self.add_namespace(number)
        self.add_link(number)

    def add_link(self, number):
        """The link of an end that has none."""
        hub, end, port = self.namespace(HUB), self.namespace(number), f"port{number}"
        link = within(hub, "ip", "link")
        ip = within(end, "ip")
        setup(*link, "add", port, "mtu", str(self.mtu), "type", "veth",
              "peer", "name", END_INTERFACE, "address", self.hardware_address(number),
              "mtu", str(self.mtu), "netns", end)  # fmt: skip
        setup(*link, "set", port, "master", HUB_INTERFACE, "up")
        setup(*ip, "addr", "add", f"{self.address(number)}/24", "dev", END_INTERFACE)
        setup(*ip, "link", "set", END_INTERFACE, "up")
        if self.rate_bps:
            for namespace, interface in [(end, END_INTERFACE), (hub, port)]:
                setup(*within(namespace, "tc"), "qdisc", "add", "dev", interface, "root",
                      *shaping(self.rate_bps))

        if self.loss:
            # At the far end, each packet by itself: before, up to 45 travel as one.
            setup(*link, "set", port, "gso_max_segs", "1")
            tc = within(end, "tc")
            setup(*tc, "qdisc", "add", "dev", END_INTERFACE, "clsact")
            setup(*tc, "filter", "add", "dev", END_INTERFACE, "ingress", "protocol", "ip", "bpf",
                  "bytecode", losing(self.loss), "direct-action")

    def remove_link(self, number):
        """Both its interfaces vanish."""
        setup(*within(self.namespace(HUB), "ip", "link", "del", f"port{number}"))

    def cut(self, number, is_cut):
        """As if somebody had pulled the cable; the end's own interface and addresses stay."""
        setup(*within(self.namespace(HUB), "ip", "link", "set", f"port{number}",
                      "down" if is_cut else "up"))

    def namespace(self, end):
        return f"{self.prefix}{end}"

    def address(self, end):
        return f"{NETWORK}.{254 if end == HUB else end + 1}"

    def hardware_address(self, end):
        """Of its own, and the same when a link is made again: a bridge without one takes a port's, and
        whoever had learned it loses its way for half a minute when that port goes."""
        return f"02:00:00:00:00:{254 if end == HUB else end + 1:02x}"

    def close(self):
        handle_signals(signal.SIG_IGN)  # in the tools called here as well
        self.kill()
        for namespace in reversed(self.namespaces):
            subprocess.run(["ip", "netns", "del", namespace], stderr=subprocess.DEVNULL)
        self.namespaces = []
        shutil.rmtree(self.folder, ignore_errors=True)
        catch_signals()

    def kill(self):
        """Kills what runs in the namespaces, also what a launcher or a daemon left there, and waits
        until it is gone: who comes next needs the same ports."""
        for process in self.processes + self.daemons:
            process.kill()
            process.wait()
        deadline = time.monotonic() + 5
        for namespace in self.namespaces:
            while (left := living(namespace)) and time.monotonic() < deadline:
                for pid in left:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                time.sleep(0.01)
        self.processes = []
        self.daemons = []

    def launcher(self):
        """A program that is called as rsh is, HOST COMMAND..., with an end's address as the host.

        Each end gets its own host name, or MPI takes all of them for one machine.
        """
        lines = ["#!/bin/sh", 'while [ "${1#-}" != "$1" ]; do shift; done', "case $1 in"]
        for end in range(self.count):
            lines.append(f"{self.address(end)}) end={self.namespace(end)} ;;")
        lines += ["esac", "shift"]
        command = ["unshare", "--uts", "sh", "-c", '"hostname $end; $*"']
        lines.append(f"exec {' '.join(within('$end', *command))}")
        path = os.path.join(self.folder, "launch")
        with open(path, "w", encoding="utf-8") as file:
            print(*lines, sep="\n", file=file)
        os.chmod(path, 0o755)
        return path

    def inside(self, end, command):
        """The command that runs `command` at an end."""
        return within(self.namespace(end), *command)

    def start(self, end, command):
        """Starts a daemon, which lives until the next run() ends."""
        log = open(os.path.join(self.folder, f"log{len(self.daemons)}"), "w", encoding="utf-8")
        with log:
            self.daemons.append(subprocess.Popen(self.inside(end, command), stderr=log,
                                                 stdin=subprocess.DEVNULL, start_new_session=True))

    def cpu_s(self, end):
        """CPU seconds that the processes have taken that live there now."""
        found = 0
        for pid in living(self.namespace(end)):
            for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
                with open(path, encoding="utf-8") as file:
                    found += int(file.readline().split()[0])
        return found / 1e9

    def check_daemons(self, name):
        for number, daemon in enumerate(self.daemons):
            if daemon.poll():
                raise Failure(f"{name}: a daemon has ended: {self.last_words(number)}")

    def last_words(self, number):
        with open(os.path.join(self.folder, f"log{number}"), encoding="utf-8", errors="replace") as log:
            return next(iter(reason(log)), "it says nothing")

    def start_server(self, binary, port, *lines, count=1):
        """Starts a server with a switch of its own, where a switch is, in the hub, or several in a row
        of ports, and waits until they listen; its address."""
        address = f"{self.address(HUB)}:{port}" + (f"-{port + count - 1}" if count > 1 else "")
        config = os.path.join(self.folder, "server.yaml")
        # Servers in a row cannot share one path; theirs lie in the default folder.
        status = [f"status: {os.path.join(self.folder, 'status')}"] if count == 1 else []
        with open(config, "w", encoding="utf-8") as file:
            print(f"listen: {address}", *status, *lines, sep="\n", file=file)
        self.start(HUB, [binary, "server", "--config", config])
        for each in range(port, port + count):
            self.await_port(HUB, each)
        return address

    def await_port(self, end, port):
        """Until a daemon there has opened a UDP socket at the port."""
        wanted = f":{port:04X} "
        deadline = time.monotonic() + 5
        while wanted not in self.udp_sockets(end):
            self.check_daemons("start")
            if time.monotonic() > deadline:
                raise Failure(f"nobody opens UDP port {port}")
            time.sleep(0.01)

    def udp_sockets(self, end):
        return subprocess.run(self.inside(end, ["cat", "/proc/net/udp"]),
                              capture_output=True, text=True).stdout

    def run(self, name, commands, deadline_s, lines=None, last=None):
        """Runs commands [(end, arguments)] to their ends; what the first one printed.

        All must succeed within the deadline; `name` says in the failure whose they are. With `lines`
        they are done, and killed, when the first one has printed so many. `last` is called at the end,
        while daemons still run.
        """
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
            for number, (end, command) in enumerate(commands):
                self.processes.append(subprocess.Popen(
                    self.inside(end, command),
                    stdin=subprocess.DEVNULL,
                    stdout=out if number == 0 else subprocess.DEVNULL,
                    stderr=errors,
                    env={**os.environ, "TMPDIR": self.folder},
                    start_new_session=True,  # Ctrl-C is ours to handle
                ))
            try:
                self.wait(name, deadline_s, lambda: lines and count_lines(out) >= lines)
                if last:
                    last()
            except Failure as failure:
                errors.seek(0)
                raise Failure(": ".join([str(failure), *reason(errors)])) from None
            finally:
                self.kill()
            out.seek(0)
            return out.read()

    def wait(self, name, deadline_s, is_done):
        deadline = time.monotonic() + deadline_s
        while True:
            states = [process.poll() for process in self.processes]
            for number, state in enumerate(states):
                if state:
                    raise Failure(f"{name}: process {number} of {len(states)}: exit status {state}")
            self.check_daemons(name)
            if None not in states or is_done():
                return
            if time.monotonic() > deadline:
                raise Failure(f"{name}: not done after {deadline_s} s")
            time.sleep(0.05)


def living(namespace):
    found = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]


def reason(errors):
    """The line that says most about a failure: a rank's own, or else the last one."""
    said = [line.strip() for line in errors if line.strip()]
    return ([line for line in said if line.startswith("rank ")] or said[-1:])[:1]


def count_lines(file):
    """Of a file that a process is writing: its place there must not move."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).count(b"\n")


def handle_signals(handler):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handler)


def catch_signals():
    """Turns signals that end a program into KeyboardInterrupt, so that fabrics are removed."""
    handle_signals(signal.default_int_handler)
