"""Ports of 127.0.0.1 that nobody uses, nor another test while this one runs.

A claim is a name among abstract sockets, of which each network namespace has its own, as it has of
ports; tests/netns/processes.c does the same. Ports are below those that the kernel gives to whoever
asks for any.
"""
import os
import socket

_FIRST, _COUNT, _STEP = 10000, 20000, 64
_claims = []
_tried = iter(range(_COUNT))


def _claim(port):
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(f"\0gradwire-port-{port}")
        for kind in socket.SOCK_DGRAM, socket.SOCK_STREAM:
            with socket.socket(socket.AF_INET, kind) as probe:
                probe.bind(("127.0.0.1", port))
    except OSError:
        claim.close()
        return False
    _claims.append(claim)
    return True


def free_row(count):
    """The first of so many in a row."""
    found = 0
    for tried in _tried:
        port = _FIRST + (os.getpid() * _STEP + tried) % _COUNT
        found = (found + 1 if port > _FIRST else 1) if _claim(port) else 0
        if found == count:
            return port - count + 1
    raise AssertionError("no ports are free")


def free_port():
    return free_row(1)
