#!/usr/bin/env python3
"""The port at which a daemon serves its metrics is its own, and free again when it ends. Called with
the path of the program."""
import os
import socket
import subprocess
import sys
import time
import unittest
import urllib.request

from command_case import WAIT_S, CommandCase

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from ports import free_row  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1))


class MetricsPortTest(CommandCase):
    def config(self, address):
        """Of a switch that serves metrics there."""
        return self.file("switch.yaml", f"listen: 127.0.0.1:{free_row(1)}\nmetrics: {address}\n")

    def refuse(self, address, reason):
        done = self.call(PROGRAM, "switch", "--config", self.config(address), status=1)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(f"cannot serve metrics at {address}: {reason}", done.stderr)

    def test_ports_of_others__are_refused(self):
        with socket.socket() as holder:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            self.refuse(f"127.0.0.1:{holder.getsockname()[1]}", "Address already in use")

    def test_addresses_of_others__are_refused(self):
        self.refuse("192.0.2.1:9790", "Cannot assign requested address")

    def test_ports_with_old_connections__are_served(self):
        with socket.create_server(("127.0.0.1", 0)) as before:
            port = before.getsockname()[1]
            with socket.create_connection(("127.0.0.1", port)) as client:
                before.accept()[0].close()  # who closes first keeps the connection for a while
                client.recv(1)
        with subprocess.Popen([PROGRAM, "switch", "--config", self.config(f"127.0.0.1:{port}")],
                              stderr=subprocess.DEVNULL) as daemon:
            try:
                self.assertEqual(self.status_of(f"http://127.0.0.1:{port}/metrics", daemon), 200)
            finally:
                daemon.kill()

    def status_of(self, url, daemon):
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline and daemon.poll() is None:
            try:
                with urllib.request.urlopen(url) as answer:
                    return answer.status
            except OSError:
                time.sleep(0.02)
        return None


if __name__ == "__main__":
    unittest.main()
