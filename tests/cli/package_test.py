#!/usr/bin/env python3
"""What `cmake --install` leaves behind, as somebody who has nothing else sees it: libraries, headers,
pkg-config, CMake, man pages, services. Called with the path of the program in its build folder."""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from ports import free_port  # noqa: E402

BUILD = os.path.dirname(os.path.abspath(sys.argv.pop(1)))
WAIT_S = 120  # guards against hanging only

CONSUMER = """\
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C)
find_package(gradwire @VERSION@ REQUIRED)
add_executable(sum ${EXAMPLE})
target_link_libraries(sum PRIVATE gradwire::gradwire)
"""


def read(*names):
    with open(os.path.join(*names), encoding="utf-8") as file:
        return file.read()


def cache(name):
    """A variable of the build: it says which tools were used."""
    return re.search(rf"^{name}:\w+=(.*)$", read(BUILD, "CMakeCache.txt"), re.M).group(1)


def run(*command, status=0, **more):
    done = subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=WAIT_S, **more
    )
    if done.returncode != status:
        raise AssertionError(f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="gradwire_package_")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.prefix = os.path.join(folder.name, "prefix")
        run(cache("CMAKE_COMMAND"), "--install", BUILD, "--prefix", cls.prefix)
        cls.libdir = os.path.dirname(cls.only("**/libgradwire.so"))
        cls.examples = os.path.dirname(cls.only("share/doc/**/allreduce.c"))
        text = re.sub(r"/\*.*?\*/", "", read(cls.prefix, "include/gradwire.h"), flags=re.S)
        text = text.replace("#define GRADWIRE_API", "")
        cls.functions = set(re.findall(r"\bGRADWIRE_API\b[^;(]*\b(gradwire_\w+)\(", text))
        assert len(cls.functions) == text.count("GRADWIRE_API") > 10, cls.functions
        cls.errors = set(re.findall(r"\bGRADWIRE_ERR_\w+", text))

    @classmethod
    def only(cls, pattern):
        """The one installed file that fits."""
        found = glob.glob(os.path.join(cls.prefix, pattern), recursive=True)
        assert len(found) == 1, f"{pattern}: {found}"
        return found[0]

    def path(self, name):
        return os.path.join(self.folder, name)

    def environment(self, **more):
        """What a program needs of ours, and nothing that a launcher may have set outside."""
        names = r"GRADWIRE_|RANK$|WORLD_SIZE$|MASTER_|OMPI_|PMI_|SLURM_"
        kept = {name: text for name, text in os.environ.items() if not re.match(names, name)}
        return {**kept, "LD_LIBRARY_PATH": self.libdir,
                "PKG_CONFIG_PATH": os.path.join(self.libdir, "pkgconfig"), **more}  # fmt: skip

    def pkg_config(self, *words):
        return run("pkg-config", *words, "gradwire", env=self.environment()).stdout.split()

    def compile(self, name, *flags, example="allreduce.c"):
        source = os.path.join(self.examples, example)
        flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-o", self.path(name), source, *flags]
        run(cache("CMAKE_C_COMPILER"), *flags)
        return self.path(name)

    def needs_library(self, program):
        return "[libgradwire.so.0]" in run("readelf", "--dynamic", program).stdout

    def assert_says(self, program, said):
        """Two ranks of an example each say what they are expected to."""
        join = f"127.0.0.1:{free_port()}"
        ranks = [
            subprocess.Popen(
                [program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env=self.environment(GRADWIRE_JOIN=join, WORLD_SIZE="2", RANK=str(rank)),
            )
            for rank in range(2)
        ]  # fmt: skip
        try:
            for rank, process in enumerate(ranks):
                output = process.communicate(timeout=WAIT_S)
                self.assertEqual(output, (said.format(rank=rank, other=1 - rank) + "\n", ""))
                self.assertEqual(process.returncode, 0)
        finally:
            for process in ranks:
                process.kill()
                process.communicate()

    def assert_sums(self, program):
        self.assert_says(program, "rank {rank} of 2: every sum is 3")

    def test_shared_library__exports_the_header(self):
        lines = run("nm", "--dynamic", "--defined-only", os.path.join(self.libdir, "libgradwire.so"))
        symbols = {tuple(line.split()[1:]) for line in lines.stdout.splitlines()}
        expected = {("T", f"{name}@@GRADWIRE_0.1") for name in self.functions}
        self.assertEqual(symbols, expected | {("A", "GRADWIRE_0.1")})

    def test_program__compiles_by_pkg_config(self):
        program = self.compile("shared", *self.pkg_config("--cflags", "--libs"))
        self.assertTrue(self.needs_library(program))
        self.assert_sums(program)

    def test_program__compiles_statically(self):
        flags = self.pkg_config("--cflags", "--libs", "--static")
        program = self.compile("static", "-static", *flags)
        self.assertFalse(self.needs_library(program))
        self.assert_sums(program)

    def test_program__compiles_by_cmake(self):
        source, build = self.path("consumer"), self.path("consumer_build")
        os.mkdir(source)
        with open(os.path.join(source, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write(CONSUMER.replace("@VERSION@", cache("CMAKE_PROJECT_VERSION")))
        cmake = cache("CMAKE_COMMAND")
        run(cmake, "-G", cache("CMAKE_GENERATOR"), "-S", source, "-B", build,
            f"-DCMAKE_MAKE_PROGRAM={cache('CMAKE_MAKE_PROGRAM')}",
            f"-DCMAKE_C_COMPILER={cache('CMAKE_C_COMPILER')}",
            f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DEXAMPLE={os.path.join(self.examples, 'allreduce.c')}")  # fmt: skip
        run(cmake, "--build", build)
        self.assertTrue(self.needs_library(os.path.join(build, "sum")))
        self.assert_sums(os.path.join(build, "sum"))

    def test_example__overlaps_calls_in_an_event_loop(self):
        flags = self.pkg_config("--cflags", "--libs")
        program = self.compile("overlapping", *flags, example="overlap.c")
        heard = "rank {rank} heard 'from rank {other}', and the last rate is 0.3"
        self.assert_says(program, heard)

    def test_example__says_what_is_wrong(self):
        program = self.compile("wrong", *self.pkg_config("--cflags", "--libs"))
        done = run(program, status=1, env=self.environment(WORLD_SIZE="2", RANK="1"))
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"\Arank 1 cannot join: .*neither join nor server.*\n\Z")

    def test_version__is_one(self):
        version = cache("CMAKE_PROJECT_VERSION")
        self.assertEqual(self.pkg_config("--modversion"), [version])
        self.assertEqual(run(self.only("bin/gradwire"), "version").stdout, f"gradwire {version}\n")
        self.assertTrue(os.path.exists(os.path.join(self.libdir, f"libgradwire.so.{version}")))

    def test_manual_of_the_program__has_every_option(self):
        page = read(self.only("share/man/man1/gradwire.1")).replace("Fl Fl ", "--")
        program = self.only("bin/gradwire")
        commands = re.findall(r"^  (\w+) ", run(program, "help").stdout, re.M)
        self.assertGreater(len(commands), 5)
        for command in commands:
            self.assertRegex(page, rf"(?m)^\.Cm {command}$")
            if command != "help":
                options = re.findall(r"--[a-z][a-z-]*", run(program, command, "--help").stdout)
                self.assertIn("--help", options)
                for option in options:
                    self.assertRegex(page, rf"{option}(?![a-z-])", command)

    def test_manual_of_the_library__has_every_function(self):
        page = read(self.only("share/man/man3/gradwire.3"))
        synopsis = page.split(".Sh DESCRIPTION")[0]
        self.assertEqual(set(re.findall(r"^\.F[no] (gradwire_\w+)", synopsis, re.M)), self.functions)
        self.assertEqual(set(re.findall(r"^\.It Dv (GRADWIRE_ERR_\w+)", page, re.M)), self.errors)
        for name in self.functions:
            alias = read(self.only(f"share/man/man3/{name}.3"))
            self.assertEqual(alias, ".so man3/gradwire.3\n")
        pages = os.listdir(os.path.join(self.prefix, "share/man/man3"))
        self.assertEqual(len(pages), len(self.functions) + 1)

    def test_services__run_the_commands(self):
        for daemon in ("switch", "server"):
            unit = read(self.only(f"lib/systemd/system/gradwire-{daemon}.service"))
            start = f"ExecStart=gradwire {daemon} --config /etc/gradwire/{daemon}.yaml\n"
            self.assertEqual(re.findall("ExecStart=.*\n", unit), [start])
            self.assertNotIn("@daemon", unit)
            self.only(f"share/doc/gradwire/examples/{daemon}.yaml")


if __name__ == "__main__":
    unittest.main()
