"""What tests of command lines share: a folder of their own, files in it, and calls that must end
with a status."""
import os
import subprocess
import tempfile
import unittest

WAIT_S = 120  # guards against hanging only


class CommandCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gradwire_cli_")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def file(self, name, content):
        """Writes a file into the folder; returns its path."""
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def call(self, *words, status=0, env=None):
        """Runs a program to its end."""
        done = subprocess.run(
            words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
            timeout=WAIT_S, env=env,
        )  # fmt: skip
        self.assertEqual(done.returncode, status, done.stderr)
        return done
