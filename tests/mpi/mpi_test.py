#!/usr/bin/env python3
"""Programs for MPI with the library preloaded: their sums are MPI's own, and errors of a job are
errors of MPI. Called with an MPI's launcher, the library, the program mpi_cases and gradwire."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from ports import free_port  # noqa: E402

LAUNCHER, LIBRARY, PROGRAM, GRADWIRE = sys.argv[1:5]
IS_OPENMPI = LAUNCHER.endswith("openmpi")
WAIT_S = 100  # guards against hanging only
# More ranks than cores. MPICH polls without a pause, which costs each call a turn of the scheduler.
RANKS = 4 if IS_OPENMPI else 3
# What MPI takes for a host has the name of the machine; these have one each, which is an address.
HOSTS = ["unshare", "--uts", *([] if os.geteuid() == 0 else ["--map-root-user"]), "sh", "-c"]
HOSTS += ['hostname 127.0.0.$((${PMI_RANK:-$OMPI_COMM_WORLD_RANK} + 1)); exec "$@"', "sh"]
# The launcher must not hear that a rank dies: MPICH's would tell the others by a signal, and leave.
UNHEARD = ["sh", "-c", 'trap "" USR1; "$@"; exit', "sh"]


def launch(what, ranks=RANKS, preload=LIBRARY, inside=(), **variables):
    """Runs ranks of the program, `inside` of a command; returns what the launcher does, and what
    each rank says."""
    command = [LAUNCHER]
    if IS_OPENMPI:
        command += ["--allow-run-as-root", "--oversubscribe", "-x", f"LD_PRELOAD={preload}"]
        # Messages need their sender to progress; and no transport that looks for its hardware.
        command += ["--mca", "pml", "ob1", "--mca", "btl_vader_single_copy_mechanism", "none"]
        command += ["--enable-recovery"] if inside is UNHEARD else []
    else:
        command += ["-disable-auto-cleanup"] if inside is UNHEARD else []
        command += ["-genv", "LD_PRELOAD", preload]
    names = r"GRADWIRE_|RANK$|WORLD_SIZE$|MASTER_"
    kept = {name: text for name, text in os.environ.items() if not re.match(names, name)}
    with tempfile.TemporaryDirectory(prefix="gradwire_mpi_") as folder:
        done = subprocess.run(
            [*command, "-n", str(ranks), *inside, PROGRAM, folder, what], env={**kept, **variables},
            timeout=WAIT_S, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
        said = {}
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                said[int(name)] = file.read()
    return done, said


class MpiTest(unittest.TestCase):
    def assert_sums(self, launched, chosen):
        done, said = launched
        self.assertEqual((done.returncode, said), (0, {}), done.stderr)
        self.assertEqual(len(re.findall("gradwire: ", done.stderr)), 1, done.stderr)
        self.assertRegex(done.stderr, chosen)

    def assert_errors(self, launched, ranks, error):
        done, said = launched
        self.assertEqual(sorted(said), list(range(ranks)), done.stderr)
        for text in said.values():
            self.assertRegex(text, f"^gradwire: {error}")

    def test_sums__are_those_of_mpi(self):
        chosen = rf"sums of {RANKS} ranks on {RANKS} hosts via ring, rank 0 at 127\.0\.0\.1:\d+\n"
        self.assert_sums(launch("sums", inside=HOSTS, GRADWIRE_MPI_DOUBLE="yes"), chosen)

    def test_sums__by_a_server(self):
        name = f"127.0.0.1:{free_port()}"
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
            config.write(f"listen: {name}\nmulticast: none\n")
            config.flush()
            command = [GRADWIRE, "server", "--config", config.name]
            with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
                try:
                    launched = launch("sums", ranks=2, GRADWIRE_SERVER=name)
                finally:
                    server.send_signal(signal.SIGKILL)
        self.assert_sums(launched, f"sums of 2 ranks on 1 host via ina, server {name}\n")

    def test_sums__without_the_library_are_missed(self):
        done, said = launch("sums", ranks=2, preload="")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("sum 2, 0 given", said.values())

    def test_killed_rank__is_an_error_of_the_others(self):
        launched = launch("killed", inside=UNHEARD)
        self.assert_errors(launched, RANKS - 1, f"rank {RANKS - 1} is lost$")

    def test_wrong_setting__is_an_error_of_all(self):
        for name, value, error in (
            ("GRADWIRE_VIA", "sideways", "GRADWIRE_VIA is sideways: ina, ps, ring or default$"),
            ("GRADWIRE_JOIN", "127.0.0.256:4790", r"no way to 127\.0\.0\.256 \("),
        ):
            self.assert_errors(launch("error", **{name: value}), RANKS, error)

    def test_wrong_setting__goes_to_the_error_handler(self):
        done, said = launch("handler", GRADWIRE_VIA="sideways")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("gradwire: GRADWIRE_VIA is sideways: ina, ps, ring or default", said.values())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
