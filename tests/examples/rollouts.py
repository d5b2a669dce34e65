"""rollouts.py MODEL: the commands of docs/preferences.md from an engine's answers to a step by its advantages, with the
experts that the answers went to. Environment: HECATEC, DATA."""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

T, EXPERTS, TOPK, ANSWERS = 32, 8, 2, 48


def run(*command):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def write_answers(drawn):
    """The advantages of all tokens."""
    gains = []
    with open("answers.jsonl", "w") as file:
        for _ in range(ANSWERS // 2):
            prompt, choices = [drawn.randrange(256) for _ in range(drawn.randint(3, 8))], []
            for _ in range(2):
                answer, gain = [drawn.randrange(256) for _ in range(drawn.randint(4, 20))], drawn.gauss(0, 1)
                routes = [[drawn.sample(range(EXPERTS), TOPK)] for _ in range(len(prompt) + len(answer) - 1)]
                gains += [gain] * len(answer)
                choices.append({"token_ids": answer, "logprobs": [-5.5] * len(answer), "ref_logprobs": [-5.6] * len(answer),
                                "advantage": gain, "routed_experts": routes})
            print(json.dumps({"prompt_token_ids": prompt, "choices": choices}), file=file)
    return gains


def main():
    model = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        gains = write_answers(random.Random(1))
        run(os.environ["DATA"], "rollouts", f"--pack={T}", "--vocabulary=256", "--layers=1", f"--experts={EXPERTS}", f"--topk={TOPK}",
            "--out=drawn.bin", "answers.jsonl")
        settings = ("data.format=llmc", "train.objective=policy(clip = 0.2, kl = 0.01)", f"train.tokens={ANSWERS * T}",
                    "parallel.microbatch=8")
        run(os.environ["HECATEC"], model, "-w", "-D", f"T={T}", "-D", "L=1", "-D", "D=32", "-D", "F=32", "-o", "m",
            *[word for setting in settings for word in ("--set", setting)])
        run("./m", "train", "--data", "drawn.bin", "--val", "drawn.bin", "--teacher", "drawn.bin.rollout", "--set", "data.order=sequential",
            "--route", "ids:drawn.bin.ids", "--record-ids", "taken.ids", "--steps", 1, "--log", "log")
        told = json.loads(pathlib.Path("log").read_text())["rollout"]
        assert abs(told["advantage"] - sum(gains) / len(gains)) < 1e-6 and 0.5 < told["ratio"] < 2 and told["kl"] > 0, told
        assert pathlib.Path("taken.ids").read_bytes() == pathlib.Path("drawn.bin.ids").read_bytes()


main()
