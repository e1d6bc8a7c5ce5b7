"""Plain TCP, as a yardstick: one end of a stream or of a ring of streams, which add nothing up.

    peer_tcp.py [--listen ADDRESS] [--to ADDRESS] [--cc NAME] BYTES ITERATIONS

An iteration receives BYTES from whoever connects, and sends as many at the same time. Prints the
seconds of each iteration after the first, and the machine's CPU seconds per iteration.
"""
import argparse
import json
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True
from measure import machine_cpu_s

PORT = 29500
CHUNK = 1 << 20
CONNECT_S = 10


def use(stream, cc):
    """Sets the congestion control of a stream, or of those that a listener accepts."""
    if cc:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
    return stream


def connect(address):
    deadline = time.monotonic() + CONNECT_S
    while True:
        try:
            return socket.create_connection((address, PORT))
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                sys.exit(f"nobody listens at {address}")
            time.sleep(0.01)


def send(stream, size):
    data = memoryview(bytes(CHUNK))
    while size > 0:
        size -= stream.send(data[:size])


def receive(stream, size):
    data = memoryview(bytearray(CHUNK))
    while size > 0:
        count = stream.recv_into(data[:size])
        if count == 0:
            sys.exit("the stream ended early")
        size -= count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen")
    parser.add_argument("--to")
    parser.add_argument("--cc")
    parser.add_argument("bytes", type=int)
    parser.add_argument("iterations", type=int)
    args = parser.parse_args()
    listener = use(socket.create_server((args.listen, PORT)), args.cc) if args.listen else None
    out = use(connect(args.to), args.cc) if args.to else None
    stream = listener.accept()[0] if listener else None

    def iterate():
        begin = time.perf_counter()
        sender = threading.Thread(target=send, args=(out, args.bytes if out else 0))
        sender.start()
        receive(stream, args.bytes if stream else 0)
        sender.join()
        return time.perf_counter() - begin

    iterate()
    cpu = machine_cpu_s()
    times = [iterate() for _ in range(args.iterations)]
    cpu = (machine_cpu_s() - cpu) / args.iterations
    print(json.dumps({"bytes": args.bytes, "times_s": times, "cpu_s": cpu}))


if __name__ == "__main__":
    main()
