"""What a result must say about the machine it was measured on."""
import os
import platform
import re
import resource
import subprocess
import time


def cpu_fields():
    with open("/proc/cpuinfo") as lines:
        first = lines.read().split("\n\n")[0]
    return dict(re.split(r"\s*:\s*", line, maxsplit=1) for line in first.splitlines() if ":" in line)


def has_avx512():
    return "avx512f" in cpu_fields().get("flags", "").split()


def output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def describe(interpreters):
    """interpreters: by name, those that may have torch, or None."""
    cpu = cpu_fields()
    about = {
        "cpu": cpu.get("model name", platform.machine()),
        "family": f"{cpu.get('cpu family')}/{cpu.get('model')}",
        "cores": os.cpu_count(),
        "avx512": has_avx512(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "compiler": output("gcc", "--version").splitlines()[0],
        "load_before": os.getloadavg()[0],
    }
    for name, python in interpreters.items():
        version = output(python, "-c", "import torch; print(torch.__version__)") if python else "unknown"
        if version != "unknown":
            about[name] = version
    about["blas"] = os.path.realpath("/usr/lib/x86_64-linux-gnu/libblas.so.3")
    return about


def slug(about):
    """File name: the CPU and its cores; no host names."""
    words = re.sub(r"[^a-z0-9]+", "-", about["cpu"].lower()).strip("-")
    return f"{words}-{about['cores']}cores"


def busy_seconds():
    """CPU seconds that all programs together have used."""
    with open("/proc/stat") as lines:
        user, nice, system, _idle, _wait, irq, softirq, steal = map(int, lines.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    return sum(resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime
               for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def undisturbed(measure, allowed, patience):
    """measure() while others use at most `allowed` cores on average: waits for such a moment, and
    measures again when it did not last. After `patience` seconds the least disturbed result counts.
    Returns the result with what others used, in cores, as "disturbed"."""
    end, best = time.monotonic() + patience, None
    while best is None or (best["disturbed"] > allowed and time.monotonic() < end):
        before = busy_seconds()
        time.sleep(1)
        if busy_seconds() - before > allowed and time.monotonic() < end:
            continue
        begin, others = time.monotonic(), busy_seconds() - own_seconds()
        result = measure()
        cores = (busy_seconds() - own_seconds() - others) / (time.monotonic() - begin)
        if best is None or cores < best["disturbed"]:
            best = {**result, "disturbed": round(max(cores, 0), 3)}
    return best
