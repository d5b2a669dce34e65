"""watchers.py PROGRAM: TensorBoard and Prometheus get the numbers of a run's log.

Event files are read by a reader of this test, checksums included, and by TensorBoard's own where Python has it. Metrics are
asked for while the run goes on. A port that is taken and a folder that cannot be made are errors before the first step; another
host's name is turned away; clients that are slow keep nobody waiting; a file that cannot be written any more is left,
and the run goes on.
"""
import glob
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

PROGRAM = os.path.abspath(sys.argv[1])


def check(holds, what):
    if not holds:
        sys.exit(f"not so: {what}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def fields(data):
    """(number, value) of a message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        size = {1: 8, 5: 4}.get(key & 7)
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        if key & 7 == 2:
            size = varint()
        yield key >> 3, data[at:at + size]
        at += size


def events(path):
    with open(path, "rb") as file:
        data = file.read()
    at, found = 0, []
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        check(struct.unpack_from("<I", data, at + 8)[0] == masked(data[at:at + 8]), "the checksum of a length")
        event = data[at + 12:at + 12 + length]
        check(struct.unpack_from("<I", data, at + 12 + length)[0] == masked(event), "the checksum of a record")
        found.append(dict(fields(event)))
        at += 16 + length
    return found


def check_routers(values, line):
    """How even routers are: the worst of each step, and each layer where the log has it."""
    told = {f"router/{name}": number for name, number in line["router"].items()}
    for layers, of in line.get("routers", {}).items():
        told |= {f"router_{name}/{layers}.{layer}": number for name, numbers in of.items() for layer, number in enumerate(numbers)}
    check({tag for tag in values if tag.startswith("router")} == told.keys(), f"numbers of routers: {told.keys()}")
    check(all(abs(values[tag] - number) <= 1e-6 for tag, number in told.items()), f"numbers of routers: {told}")


def check_events(path, log):
    found = events(path)
    check(found[0][3] == b"brain.Event:2" and len(found) == 1 + len(log), "a version, and an event a step")
    for event, line in zip(found[1:], log):
        values = {}
        for _, value in fields(event[5]):
            parts = dict(fields(value))
            values[parts[1].decode()] = struct.unpack("<f", parts[2])[0]
        check(event[2] == line["step"] and abs(struct.unpack("<d", event[1])[0] - time.time()) < 600, "steps and times")
        for tag, key in (("train/loss", "loss"), ("train/lr", "lr"), ("train/grad_norm", "grad_norm")):
            check(abs(values[tag] - line[key]) <= 1e-6 * abs(line[key]), f"{tag} is the log's")
        check_routers(values, line)


def check_with_tensorboard(folder, log):
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError:
        return
    board = EventAccumulator(folder)
    board.Reload()
    scalars = board.Scalars("train/loss")
    check([s.step for s in scalars] == [line["step"] for line in log], "TensorBoard reads every step")
    check(all(abs(s.value - line["loss"]) < 1e-5 for s, line in zip(scalars, log)), "TensorBoard reads the losses")


def ask(port, path="/metrics", host=None):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Host": host} if host else {})
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


def asked_while_it_runs(port, run):
    for _ in range(400):
        try:
            status, text = ask(port)
            if "hecate_train_loss" in text:
                return status, text
        except OSError:
            check(run.poll() is None, "the run goes on")
        time.sleep(0.02)
    sys.exit("not so: there are metrics")


def drip(port, silent, until):
    """One client that sends a byte at a time, and silent ones; they stay until told."""
    held = [socket.create_connection(("127.0.0.1", port)) for _ in range(silent)]
    with socket.create_connection(("127.0.0.1", port)) as slow:
        try:
            slow.send(b"GET /metrics HTTP/1.0\r\nX: ")
            while not until.wait(0.2):
                slow.send(b"a")
        except OSError:
            pass
    for one in held:
        one.close()


def slow_clients():
    """They keep neither other clients waiting nor the end of the run; who never finishes its request is turned away."""
    port, over = free_port(), threading.Event()
    with subprocess.Popen(train("--steps", "1000000", "--metrics", str(port)), stdout=subprocess.DEVNULL) as run:
        try:
            asked_while_it_runs(port, run)
            dripping = threading.Thread(target=drip, args=(port, 20, over))
            dripping.start()
            time.sleep(0.5)
            began = time.monotonic()
            check(ask(port)[0] == 200 and time.monotonic() - began < 4, "others are answered at once")
            with socket.create_connection(("127.0.0.1", port), timeout=20) as mute:
                began = time.monotonic()
                check(mute.recv(1) == b"" and 3 < time.monotonic() - began < 10, "who asks nothing is turned away")
            again = threading.Thread(target=drip, args=(port, 20, over))
            again.start()
            time.sleep(0.5)
            began = time.monotonic()
            run.terminate()
            check(run.wait(30) == 143 and time.monotonic() - began < 6, "the end waits for no client")
        finally:
            run.kill()
            over.set()
    dripping.join()
    again.join()


def train(*arguments):
    return [PROGRAM, "train", "--data", "text", *arguments]


def failing():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(train("--steps", "2", "--metrics", str(port)), capture_output=True, text=True, check=False)
        check(done.returncode == 1 and f"cannot listen on port {port}: Address already in use" in done.stderr, done.stderr)
    done = subprocess.run(train("--steps", "2", "--tensorboard", "text/board"), capture_output=True, text=True, check=False)
    check(done.returncode == 1 and "cannot make the folder 'text/board'" in done.stderr, done.stderr)
    done = subprocess.run(train("--steps", "2", "--metrics", "70000"), capture_output=True, text=True, check=False)
    check(done.returncode == 2, "no port has this number")
    limited = ["sh", "-c", 'ulimit -f 1; exec "$@"', "-", *train("--steps", "40", "--tensorboard", "small")]
    done = subprocess.run(limited, capture_output=True, text=True, check=False)
    check(done.returncode == 0 and done.stderr.count("the run goes on without it") == 1, f"a full disk: {done.stderr}")


def main():
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        with open("text", "w", encoding="utf-8") as file:
            file.write("the life of a run " * 400)
        port = free_port()
        command = train("--steps", "1000000", "--log", "log", "--tensorboard", "board", "--metrics", str(port))
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as run:
            try:
                status, text = asked_while_it_runs(port, run)
                check(status == 200 and re.search(r"^hecate_step \d+$", text, re.MULTILINE), text)
                for line in text.splitlines():
                    check(re.fullmatch(r"# (HELP|TYPE) \w+ .+|\w+(\{program=\"\w+\"\})? [-+.\w]+", line), f"a line of the format: {line}")
                check(ask(port, "/other")[0] == 404 and ask(port, host="example.org")[0] == 403, "only metrics, only from here")
                run.terminate()
                check(run.wait(30) == 143, "signals reach the run")
            finally:
                run.kill()
        with open("log", encoding="utf-8") as file:
            log = [json.loads(line) for line in file][:300]
        (path,) = glob.glob("board/events.out.tfevents.*")
        with open(path, "r+b") as file:  # The beginning, for a fast run.
            data, at = file.read(), 0
            for _ in range(1 + len(log)):
                at += 16 + struct.unpack_from("<Q", data, at)[0]
            file.truncate(at)
        check_events(path, log)
        check_with_tensorboard("board", log)
        failing()
        slow_clients()


if __name__ == "__main__":
    main()
