"""Describes the machine of a measurement, for its results."""
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


def instructions():
    """The instruction set that hecate's kernels choose, by the names of HECATE_ISA."""
    flags = cpu_fields().get("flags", "").split()
    for name, flag in (("avx512bf16", "avx512_bf16"), ("avx512", "avx512f"), ("avx2", "avx2")):
        if flag in flags:
            return name
    return "portable"


def has_avx512():
    return instructions().startswith("avx512")


def output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def describe(interpreters):
    """interpreters: by name, those that may have torch, or None."""
    cpu = cpu_fields()
    about = {
        "date": time.strftime("%Y-%m-%d"),
        "cpu": cpu.get("model name", platform.machine()),
        "family": f"{cpu.get('cpu family')}/{cpu.get('model')}",
        "cores": os.cpu_count(),
        "instructions": instructions(),
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
    """File name: the CPU, its instruction set and its cores; no host names."""
    words = re.sub(r"\(r\)|\(tm\)|processor|[^a-z0-9]+", "-", about["cpu"].lower())
    words = re.sub(r"-+", "-", words).strip("-")
    return f"{words}-{about['instructions']}-{about['cores']}cores"


def title(about):
    """The same in a heading."""
    return f"{about['cpu']} with {about['instructions']}, {about['cores']} cores"


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
