"""bundle.py BUILD [--quick] [FOLDER]: puts into FOLDER everything that checks and times target cuda on a machine which has a GPU, a driver and
nothing of this project, and packs it into FOLDER.tar.xz (BUILD/gpu-bundle). --quick: with the smallest
program only.

    run.sh              what to run there: `run.sh OUT [SECONDS] [PART...]`
    tests/ bin/         tests of kernels, gpu_bench, the tuner of GEMMs
    programs/NAME/      a program of target cuda, its arguments (case.json), and results of the model on target cpu
    lib/                libraries; libhecate_kernels_cuda.so has all kernels, so that a kernel can be changed and built there
    src/                the sources of kernels, and a Makefile that builds them with nvcc alone
    data/               texts to train on

Needs a whole build in BUILD, on an x86-64 machine with CUDA's toolkit. Programs and libraries run on any x86-64-v3."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/targets"))
sys.path.insert(0, str(ROOT / "bench/gpu"))
import check  # noqa: E402
import cuda_models  # noqa: E402
import cuda_rank_models  # noqa: E402

TEXT = "/usr/share/common-licenses/GPL-3"
ONE_RANK = ("--set=cluster.nodes=1", "--set=cluster.devices=1", "--set=data.format=bytes")
# The driver's, the toolkit's, the C library's: the machine has its own.
THERE = re.compile(r"^(ld-linux[-\w]*|libc|libm|libdl|librt|libpthread|libcuda|libcudart|libcublas(Lt)?|libnccl|libnvidia[-\w]*|libhecate\w*)\.so")
LOSS = {"fp32": 1e-4, "bf16": 2**-9}
NORM = {"fp32": 1e-4, "bf16": 2**-6}


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", check=False, **options)
    if done.returncode:
        sys.exit(f"bundle.py: error: {' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def libraries_of(binaries):
    """The libraries that the machine may lack, by their names."""
    found = {}
    for binary in binaries:
        for name, path in re.findall(r"^\s*(\S+) => (/\S+)", run("ldd", binary), re.M):
            if not THERE.match(name):
                found[name] = path
    return found


class Bundle:
    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.hecatec = build / "bin/hecatec"

    def compile(self, model, output, *arguments, device=False):
        # The kernels come from the shared library, which is found first.
        target = ("--target=cuda", f"--cc=gcc -L{self.build}/tests/lib -Wl,--allow-shlib-undefined") if device else ()
        run(self.hecatec, "-w", "--march=x86-64-v3", "-o", output, *target, *arguments, model)

    def program(self, name, model, *arguments, steps, precision="fp32", compare=True, options=(), ranks=1):
        """A program; with `compare`, also target cpu's losses of the same steps, and its routing."""
        place = self.folder / "programs" / name
        place.mkdir(parents=True)
        self.compile(model, place / "program", *arguments, device=True)
        case = {"steps": steps, "options": list(options), "loss": LOSS[precision], "norm": NORM[precision], "ranks": ranks}
        if compare:
            cpu = place / "cpu"
            self.compile(model, cpu, *arguments)
            command = [cpu, "train", "--data", TEXT, "--steps", steps, "--set", f"log.jsonl={place}/cpu.jsonl", "--set=log.every=1", "--record-ids",
                       place / "ids", *(str(option).replace("$HERE", str(place)) for option in options)]
            status, texts = check.start(ranks, [str(word) for word in command], place / "meet")
            if status:
                sys.exit(f"bundle.py: error: {name} on target cpu: status {status}\n{''.join(texts)}")
            for path in place.glob("meet*"):
                path.unlink()
            cpu.unlink()
        (place / "case.json").write_text(json.dumps(case) + "\n")
        print(f"program {name}", flush=True)

    def small_programs(self):
        for precision in ("fp32", "bf16"):
            self.program(f"operations-{precision}", ROOT / "tests/targets/cuda.moe", f"--set=train.precision={precision}", steps=3,
                         precision=precision)
        for name, (steps, tokens, smaller) in cuda_models.MODELS.items():
            place = self.folder / "programs" / name.replace("+", "-")
            options = [f"--set=train.tokens={tokens}"]
            teacher = cuda_models.teacher_of(name, TEXT, str(self.folder / "data"))
            if teacher:
                shutil.move(teacher[1], self.folder / "data/teacher")
                options += ["--teacher", "$HERE/../../data/teacher"]
            self.program(place.name, ROOT / f"examples/{name.split('+')[0]}.moe", *smaller, steps=steps, options=options)

    def rank_programs(self):
        """Four ranks, which one GPU has to share: every kind of movement."""
        for name, ranks, policy, precision in (("tiny", 4, "fssdp", "fp32"), ("gpt-moe-s", 4, "fssdp", "fp32"), ("deepseek-v3-like", 4, "ep", "fp32"),
                                               ("deepseek-v3-like", 4, "fssdp", "bf16"), ("gpt-moe-s", 2, "fastermoe", "fp32")):
            settings = cuda_rank_models.settings_of(name, ranks, policy, precision)
            self.program(f"ranks-{name}-{ranks}-{policy}-{precision}", ROOT / f"examples/{name}.moe", *settings, "--ranks=tcp", steps=4,
                         precision=precision, ranks=ranks)

    def large_programs(self):
        bf16 = ("--set=train.precision=bf16", *ONE_RANK)
        whole = ("--set=parallel.recompute=none", "--set=parallel.microbatch=2")  # Both sequences at once, as torch_steps.py does.
        self.program("bench-medium", ROOT / "examples/bench-medium.moe", *bf16, steps=8, precision="bf16")
        self.program("qwen3-stack", ROOT / "examples/qwen3-30b-a3b.moe", *bf16, "-DL=4", *whole,
                     steps=16, compare=False, options=["--set=train.tokens=8192"])
        self.program("mixtral-stack", ROOT / "examples/mixtral-8x7b.moe", *bf16, "-DL=2", *whole,
                     steps=16, compare=False, options=["--set=train.tokens=8192"])

    def binaries(self):
        for what, names in {"tests": (self.build / "tests").glob("kernels_*_gpu"), "bin": [self.build / "bin/gpu_bench", self.build / "bin/hecate-tune-cuda"]}.items():
            (self.folder / what).mkdir()
            for binary in sorted(names):
                shutil.copy(binary, self.folder / what)
        (self.folder / "lib").mkdir()
        shutil.copy(self.build / "tests/lib/libhecate_kernels_cuda.so", self.folder / "lib")

    def sources(self):
        source = self.folder / "src"
        for path in run("git", "ls-files", "kernels", "tests/kernels", "bench/gpu/Makefile", cwd=ROOT).split():
            if path.endswith((".cu", ".h", ".inc")):
                (source / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / path, source / path)
        shutil.copy(ROOT / "bench/gpu/Makefile", source)
        shutil.copy(self.build / "include/hecate/kernels/launchers.h", source / "kernels")
        for path in (self.build / "kernels").glob("*/*.cu.o"):
            place = source / "objects" / path.relative_to(self.build / "kernels")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)

    def finish(self):
        binaries = [path for path in self.folder.glob("*/*") if path.parent.name in ("tests", "bin", "lib")]
        binaries += list(self.folder.glob("programs/*/program"))
        for name, path in libraries_of(binaries).items():
            if not (self.folder / "lib" / name).exists():
                shutil.copy(path, self.folder / "lib" / name)
        run("strip", *[path for path in binaries if path.name != "libhecate_kernels_cuda.so"])
        for name in ("run.sh", "check.py", "kernels.py", "torch_steps.py", "torch_kernels.py"):
            shutil.copy(ROOT / "bench/gpu" / name, self.folder)
        (self.folder / "COMMIT").write_text(run("git", "describe", "--always", "--dirty", cwd=ROOT))
        archive = f"{self.folder}.tar.xz"
        run("tar", "-C", self.folder.parent, "-cf", archive, "-I", "xz -1 -T2", self.folder.name)
        print(f"{archive}: {os.path.getsize(archive) / 2**20:.1f} MiB")


def main(build, *rest):
    quick = "--quick" in rest
    folder = next((word for word in rest if word != "--quick"), f"{build}/gpu-bundle")
    build, folder = pathlib.Path(build).resolve(), pathlib.Path(folder).resolve()
    if not (build / "tests/lib/libhecate_kernels_cuda.so").exists():
        sys.exit(f"bundle.py: error: {build} has no kernels for GPUs: it was built without nvcc or CUDA's runtime")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "data").mkdir(parents=True)
    shutil.copy(TEXT, folder / "data/text")
    bundle = Bundle(build, folder)
    bundle.sources()
    bundle.binaries()
    if quick:
        bundle.program("operations-fp32", ROOT / "tests/targets/cuda.moe", steps=3)
    else:
        bundle.small_programs()
        bundle.rank_programs()
        bundle.large_programs()
    bundle.finish()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
