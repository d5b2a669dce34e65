"""cuda_ranks.py MODEL TEXT FOLDER: programs of target cuda on several ranks, with an emulated device each and NCCL's double
between them (tests/simt): losses and norms agree with target cpu's to 1e-5, another schedule gives the same bits, the host
never touches the devices' memory and waits for one as often as it has to, any back end gives the same bits, and a
lost rank ends all.
So does a failure on one rank alone, in NCCL or before it: with one message, in bounded time.
In bf16 losses and norms agree as cuda.py says; where gradients travel in bf16, to 1e-4 and 2^-8.

Environment: as cuda.py, and MPICC; LIBRARIES with those of several ranks.
"""

import os
import re
import signal
import subprocess
import sys
import time

from cuda import EVALUATE, compare, read_log, run, words

STEPS = 3
ADAPTERS = ["adapt.of=*.attention.*,*.experts.*", "adapt.rank=3"]
CASES = {  # Ranks, steps, settings.
    "ep": (2, STEPS, ["cluster.devices=2", "parallel.experts=ep", "parallel.dense=states"]),
    "fssdp": (2, 20, ["cluster.devices=2", "parallel.placement.rematerialize=true", "parallel.placement.reshard=every(2)"]),
    "nodes": (4, STEPS, ["cluster.devices=2", "cluster.nodes=2"]),
    "relays": (4, STEPS, ["cluster.devices=4", "parallel.experts=hecate", "parallel.placement.overlap=4", "parallel.placement.memory=4",
                          "parallel.placement.reshard=every(1)"]),
    "laer": (2, STEPS, ["cluster.devices=2", "parallel.experts=laer"]),
    "smartmoe": (2, STEPS, ["cluster.devices=2", "parallel.experts=smartmoe", "parallel.placement.reshard=every(1)"]),
    "bf16": (2, STEPS, ["cluster.devices=2", "train.precision=bf16"]),
    "shard": (4, STEPS, ["cluster.devices=2", "cluster.nodes=2", "parallel.experts=ep", "parallel.dense=shard"]),
    "shard-all": (4, STEPS, ["cluster.devices=4", "parallel.experts=replicate", "parallel.dense=shard"]),
    "shard-bf16": (4, STEPS, ["cluster.devices=4", "parallel.dense=shard", "train.precision=bf16", "train.optimizer=muon"]),
    # Four iterations in a step: replicas live for it, and gradients leave in its last one; then also in bf16.
    "step": (4, STEPS, ["cluster.devices=2", "cluster.nodes=2", "parallel.placement.lifetime=step", "parallel.microbatch=1", "train.tokens=128"]),
    "narrow": (4, STEPS, ["cluster.devices=2", "cluster.nodes=2", "parallel.placement.lifetime=step", "parallel.microbatch=1", "train.tokens=128",
                          "parallel.gradients=bf16"]),
    "narrow-states": (2, STEPS, ["cluster.devices=2", "parallel.dense=states", "parallel.gradients=bf16"]),
    "known": (2, STEPS, ["cluster.devices=2", "parallel.placement.forecast=routes"]),
    "groups": (2, STEPS, ["cluster.devices=2", "parallel.experts=ep", "train.group=4"]),
    # Adapters of dense and expert matrices travel with their experts; in bf16 what is frozen has no fp32 beside it.
    "adapters": (2, STEPS, ["cluster.devices=2", *ADAPTERS, "parallel.placement.rematerialize=true", "parallel.placement.reshard=every(1)"]),
    "adapters-bf16": (4, STEPS, ["cluster.devices=2", "cluster.nodes=2", *ADAPTERS, "adapt.experts=fused", "train.precision=bf16"]),
}
# Waits of an iteration for routes: one in each of four mixtures, also where groups of a capacity and of a loss lie on
# several ranks. Then further waits of a step: for new owners.
WAITS = {"fssdp": (4, "1 parameters and scores"), "groups": (4,)}
# Faults on rank 1 alone -> exit statuses of the job, and the message. 70: the emulator says what would hang.
FAULTS = {
    "SIMT_MEMORY=33000": ((1,), "error: not enough memory on GPU 0"),
    "SIMT_FAIL=20": ((1,), r"(?s)\A(?!.*lost rank).*error: GPU 0 \(sm_90\): computing: "),
    "SIMT_NCCL=join:0": ((1,), "error: rank 1: NCCL, joining the ranks: "),
    "SIMT_NCCL=join:3": ((1,), "error: rank 1: NCCL, joining the ranks: "),
    "SIMT_NCCL=absent:1": ((1,), "error: rank [01]: NCCL, a message: this rank, joining them over NCCL, has waited for others for 3 s"),
    "SIMT_NCCL=silent:2": ((1,), "error: rank [01]: NCCL, a message: this rank, joining them over NCCL, has waited for others for 3 s"),
    "SIMT_NCCL=refuse:50": ((1,), "error: rank 1: NCCL, a (send|receive): "),
    "SIMT_NCCL=later:50": ((1,), "error: rank 1: NCCL, a message: "),
    "SIMT_NCCL=less:50": ((70,), "NCCL mismatch: rank [01] receives [0-9]+ elements of type 1, rank [01] sends [0-9]+ elements"),
    "SIMT_NCCL=swap:1": ((1, 70), "error: rank 1: NCCL, first messages, which are not what was sent"),
    "SIMT_NCCL=swap:7": ((70,), "NCCL mismatch: rank [01] receives [0-9]+ elements of type 1, rank [01] sends [0-9]+ elements"),
    "SIMT_NCCL=swap:26": ((1,), "error: rank [01]: NCCL, a message: this rank's GPU has waited for others for 3 s"),
    "SIMT_NCCL=die:50": ((9, 70), "rank 1 has died|exited on signal|[Ee]xit code: +9|is lost"),
}
QUIET = {"OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_pml": "ob1"}


def launch(ranks, *command):
    return ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), *command]


def train(ranks, program, text, name, steps, *arguments, **environment):
    """The log of a run that saves NAME.st."""
    log = name + ".jsonl"
    if os.path.exists(log):
        os.remove(log)
    run(*launch(ranks, program, "train", "--data", text, "--steps", str(steps), "--save", name + ".st", *EVALUATE,
                "--set", f"log.jsonl={log}", *arguments), **QUIET, **environment)
    return read_log(log)


def compile_for_devices(settings, model, program):
    source, kernels, host = program + ".c", program + ".cu.o", program + ".o"
    run(*words("HECATEC"), "--target=cuda", "-S", "-o", source, *settings, model)
    run(*words("CXX"), *words("CUDA_FLAGS"), "-x", "c++", "-c", "-o", kernels, source)
    run(*words("CC"), "-std=gnu17", "-O1", "-Wall", "-Wextra", "-Werror", *words("CFLAGS"), "-c", "-o", host, source)
    link = words("MPICC") if "--ranks=mpi" in settings else words("CXX")
    run(*link, *words("CFLAGS"), "-o", program, host, kernels, *words("LIBRARIES"), OMPI_CC=os.environ["CXX"])


def check(case, model, text, folder):
    ranks, steps, settings = CASES[case]
    settings = [word for setting in settings for word in ("--set", setting)]
    cpu, cuda = f"{folder}/{case}-cpu", f"{folder}/{case}"
    run(*words("HECATEC"), "-O1", "-o", cpu, *settings, model)
    compile_for_devices(settings, model, cuda)
    bf16, ids = "train.precision=bf16" in settings, f"{folder}/{case}.ids"
    narrow = "parallel.gradients=bf16" in settings
    routes = (("--record-ids", ids), ("--route", f"ids:{ids}")) if bf16 else ((), ())
    if case == "known":
        routes = (("--route", "zipf:1.2"),) * 2
    logs = [train(ranks, program, text, program, steps, *route) for program, route in zip((cpu, cuda), routes)]
    for a, b in zip(*logs, strict=True):
        for key in ("loss", "cross_entropy", "aux", "grad_norm"):
            tolerance = 2 ** (-7 if key == "grad_norm" else -9) if bf16 else 1e-5
            if narrow:  # A last bit may decide which way an element is rounded, by 2^-8 of it.
                tolerance = 2**-8 if key == "grad_norm" else 1e-4
            compare([a[key]], [b[key]], tolerance, f"{case}, step {a['step']}, {key}")
    return ranks, cuda


def same_under_another_schedule(ranks, cuda, text):
    if saved_by(ranks, cuda, text, SIMT_SEED="0") != saved_by(ranks, cuda, text, SIMT_SEED="7"):
        sys.exit(f"{cuda}: another schedule gives other bits")


def same_bits_whatever_joins_the_ranks(case, ranks, cuda, model, text):
    """Over TCP, started by mpirun and by hand, and by MPI."""
    settings = [word for setting in CASES[case][2] for word in ("--set", setting)]
    compile_for_devices([*settings, "--ranks=mpi"], model, cuda + "-mpi")
    saved = saved_by(ranks, cuda, text)
    if isinstance(saved, str) or saved != saved_by(ranks, cuda + "-mpi", text):
        sys.exit(f"{cuda} learns something else when MPI joins its ranks")
    alone, meet = cuda + "-alone.st", cuda + ".meet"
    jobs = [subprocess.Popen([cuda, "train", "--data", text, "--steps", str(STEPS), *EVALUATE, "--save", alone], stdout=subprocess.DEVNULL,
                             env={**os.environ, **QUIET, "HECATE_RANK": str(rank), "HECATE_RANKS": str(ranks), "HECATE_RENDEZVOUS": meet})
            for rank in range(ranks)]
    ended = [job.wait(timeout=120) for job in jobs]
    with open(alone, "rb") as file:
        if any(ended) or file.read() != saved:
            sys.exit(f"{cuda} learns something else without mpirun, or ends with {ended}")


def copies_that_may_wait(ranks, cuda, text, steps):
    """Copies of pageable memory, in a run of so many steps, on each rank."""
    command = launch(ranks, cuda, "train", "--data", text, *EVALUATE, "--steps", str(steps))
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True, env={**os.environ, **QUIET, "SIMT_CALLS": "1"})
    return sorted(re.findall(r"simt: .* calls, (\d+) of pageable memory", done.stderr))


def waits_of_a_step(ranks, cuda, text, routes, *more):
    """Waits of a step with two iterations: in each the host waits so often for data of routes; else for losses, norm
    and more."""
    output = run(*launch(ranks, cuda, "train", "--data", text, "--steps", "2", *EVALUATE, "--set", "train.tokens=64", "--profile"), **QUIET)
    found = re.search(r"part of it: waits for device +\d+ .*\n((?:  .*\n)*)", output)
    waits = [re.sub(r"^ *(\S.*?) +(\d+) .*", r"\2 \1", line) for line in found[1].splitlines()] if found else []
    if waits != [f"{2 * routes} routes of tokens", "1 losses", "1 the norm of the gradients", *more]:
        sys.exit(f"{cuda} waits in a step for {waits}:\n{output}")
    few, more = (copies_that_may_wait(ranks, cuda, text, steps) for steps in (1, 3))
    if few != more or len(few) != ranks:
        sys.exit(f"{cuda}: a step copies pageable memory: {few} in one, {more} in three")


def saved_by(ranks, cuda, text, **environment):
    """The file that STEPS steps save, or why they do not."""
    try:
        train(ranks, cuda, text, cuda + "-saved", STEPS, **environment)
    except SystemExit as end:
        return str(end)
    with open(cuda + "-saved.st", "rb") as file:
        return file.read()


def lost_rank_ends_all(ranks, cuda, text):
    """Kills one of the ranks in the middle of training."""
    command = launch(ranks, cuda, "train", "--data", text, "--steps", "100000", "--set", "log.every=1")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
                          env={**os.environ, **QUIET}) as job:
        said = ""
        while "step 2/" not in said:
            line = job.stdout.readline()
            if not line:
                sys.exit(f"a rank to be lost: it ended before\n{said}")
            said += line
        name, begun = os.path.basename(cuda), time.monotonic()
        found = subprocess.run(["pgrep", "-f", f"^{cuda} train"], capture_output=True, text=True, check=True).stdout.split()
        os.kill(int(found[-1]), signal.SIGKILL)
        try:
            rest, _ = job.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            sys.exit(f"{name}: a rank was lost, and the others go on after 60 s")
        if job.returncode == 0 or time.monotonic() - begun > 40:
            sys.exit(f"a rank was lost: status {job.returncode} after {time.monotonic() - begun:.0f} s\n{rest}")


def faults_end_all(cuda, text):
    train_it = [cuda, "train", "--data", text, "--steps", "20"]
    for fault, (statuses, message) in FAULTS.items():
        patience = "3" if message.endswith(" for 3 s") else "30"  # A busy machine makes a rank wait, too.
        command = [*launch(1, *train_it), ":", "-n", "1", "-x", fault, *train_it]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, **QUIET, "HECATE_COMM_PATIENCE": patience})
        said = done.stdout + done.stderr
        if done.returncode not in statuses or not re.search(message, said) or len(re.findall(r"^\S+: error: ", said, re.M)) > 1:
            sys.exit(f"{fault} of rank 1: status {done.returncode}\n{said}")


def devices_are_told_apart(cuda, text):
    """Ranks that share a device are named before NCCL meets them. Where no launcher numbers the ranks of a machine, each takes its own."""
    train_it = [cuda, "train", "--data", text, "--steps", "1"]
    done = subprocess.run(launch(2, *train_it), capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, **QUIET, "SIMT_BUS": "0000:3b:00.0", "HECATE_TRANSPORT": "nccl"})
    if done.returncode != 1 or done.stderr.count("error: ranks 0 and 1 have the same GPU, 0000:3b:00.0 of their machine") != 1:
        sys.exit(f"ranks that share a device: status {done.returncode}\n{done.stderr}")
    by_hand = {**os.environ, **QUIET, "HECATE_RANKS": "2", "HECATE_RENDEZVOUS": cuda + ".meet", "SIMT_DEVICES": "2", "SIMT_MEMORY": "33000"}
    jobs = [subprocess.Popen(train_it, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={**by_hand, "HECATE_RANK": str(rank), **more})
            for rank, more in enumerate(({"SIMT_MEMORY": "2000000"}, {}))]
    said = [job.communicate(timeout=60)[1] for job in jobs]
    if [job.returncode for job in jobs] != [1, 1] or "error: not enough memory on GPU 1" not in said[1]:
        sys.exit(f"ranks without numbers on their machine: {said}")


def main(model, text, folder):
    os.makedirs(folder, exist_ok=True)
    for case in CASES:
        ranks, cuda = check(case, model, text, folder)
        if case == "ep":
            same_bits_whatever_joins_the_ranks(case, ranks, cuda, model, text)
        if case in WAITS:
            waits_of_a_step(ranks, cuda, text, *WAITS[case])
        if case != "fssdp":
            continue
        if not re.search(r"messages +between devices: NCCL \d+\.\d+\.\d+, or CUDA IPC where ranks share one\n", run(*launch(ranks, cuda, "info"), **QUIET)):
            sys.exit("info does not name NCCL")
        same_under_another_schedule(ranks, cuda, text)
        train(ranks, cuda, text, cuda + "-apart", 1, SIMT_PROTECT="1")
        lost_rank_ends_all(ranks, cuda, text)
        faults_end_all(cuda, text)
        devices_are_told_apart(cuda, text)


if __name__ == "__main__":
    main(*sys.argv[1:])
