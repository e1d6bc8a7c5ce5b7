#!/usr/bin/env python3
"""Every key of the example configs is one that the daemons take, also those behind a #."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NEEDS = {"metrics_token_file": "metrics: 9790\n", "queue": "rate: 1Gbps\n", "pcn": "rate: 1Gbps\nqueue: red\n"}


def blocks(kind, key_file):
    """The example as pieces of one top-level key each, with what is behind a #."""
    with open(os.path.join(ROOT, "examples", f"{kind}.yaml"), encoding="utf-8") as file:
        lines = [re.sub(r"^#(?! gradwire)", "", line) for line in file]
    found = []
    for line in lines:
        if re.match(r"\w+:", line):
            found.append("")
        if found:
            found[-1] += line.replace("/etc/gradwire/key", key_file)
    return found


class DaemonConfigTest(unittest.TestCase):
    def ask(self, kind, text, *options):
        """Asks a daemon that does not run: 1, unless its config is refused."""
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            return subprocess.run([PROGRAM, kind, "--config", file.name, *(options or ["--status"])],
                                  capture_output=True, text=True, check=False)

    def run_daemon(self, text):
        """Runs one that cannot open its socket."""
        return self.ask("switch", text, "--json")

    def test_examples_have_keys_that_are_known(self):
        for kind, least in (("switch", 18), ("server", 15)):
            with tempfile.NamedTemporaryFile("w") as key:
                key.write("secret")
                key.flush()
                found = blocks(kind, key.name)
                self.assertGreaterEqual(len(found), least)
                for block in found:
                    result = self.ask(kind, NEEDS.get(block.split(":")[0], "") + block)
                    self.assertEqual((result.returncode, result.stdout), (1, ""), block + result.stderr)
                    self.assertIn("answers at", result.stderr)

    def test_the_manual_has_the_keys_of_the_examples(self):
        with open(os.path.join(ROOT, "docs", "man", "gradwire.1"), encoding="utf-8") as file:
            manual = file.read()
        manual = manual[manual.index("Keys of the config:"):]
        described = set(re.findall(r"^\.It Cm (\w+)$", manual[:manual.index(".Sh ")], re.M))
        keys = {block.split(":")[0] for kind in ("switch", "server") for block in blocks(kind, "")}
        self.assertEqual(keys, described)

    def test_secrets_that_others_may_read_are_refused(self):
        with tempfile.NamedTemporaryFile("w") as key:
            key.write("secret")
            key.flush()
            os.chmod(key.name, 0o644)
            text = f"listen: 192.0.2.1:1\nkey_files: [{key.name}]\n"  # nobody's address
            result = self.run_daemon(text)
            self.assertEqual(result.returncode, 2)
            self.assertIn("others may read it (mode 0644)", result.stderr)
            result = self.run_daemon(text + "insecure_key_files: yes\n")
            self.assertEqual(result.returncode, 1)
            self.assertIn("192.0.2.1:1", result.stderr)
            result = self.run_daemon(f"listen: 192.0.2.1:1\nmetrics_token_file: {key.name}\n")
            self.assertEqual(result.returncode, 2)
            self.assertIn("others may read it (mode 0644)", result.stderr)
            options = [PROGRAM, "bench", "--rank", "0", "--world", "1", "--join", "127.0.0.1:4790",
                       "--key-file", key.name]
            result = subprocess.run(options, capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 2)
            self.assertIn("others may read it (mode 0644)", result.stderr)

    def test_keys_whose_jobs_could_have_one_number_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = {}
            for number in (1, 59, 97):  # of the second and third, the names begin alike by chance
                paths[number] = os.path.join(folder, str(number))
                with open(paths[number], "w", encoding="utf-8") as key:
                    key.write(f"tenant {number}\n")
                os.chmod(paths[number], 0o600)
            text = "listen: 192.0.2.1:1\n"  # nobody's address
            result = self.run_daemon(text + f"key_files: [{paths[59]}, {paths[1]}, {paths[97]}]\n")
            self.assertEqual(result.returncode, 2)
            self.assertIn(f"{paths[97]}: by chance its jobs could have the numbers", result.stderr)
            result = self.run_daemon(
                text + f"switch_keys: [{paths[97]}]\nkey_files: [{paths[1]}, {paths[59]}]\n")
            self.assertEqual(result.returncode, 2)
            result = self.run_daemon(
                text + f"switch_keys: [{paths[1]}]\nkey_files: [{paths[1]}, {paths[59]}]\n")
            self.assertEqual(result.returncode, 1)  # one key in both lists is one key
            self.assertIn("192.0.2.1:1", result.stderr)

    def test_a_key_that_is_none_is_refused(self):
        for kind in ("switch", "server"):
            result = self.ask(kind, "kye_files: [a]\n")
            self.assertEqual(result.returncode, 2)
            self.assertIn("key_files", result.stderr)


if __name__ == "__main__":
    unittest.main()
