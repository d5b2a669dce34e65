"""balance_batch.py ALONE WHOLE: see balance_batch.sh. Each names a run's .jsonl and .loads."""
import json
import struct
import sys

COEFFICIENT, ITERATIONS = 0.5, 4
HEAD = struct.Struct("<8s5I")


def losses(run):
    with open(f"{run}.jsonl", encoding="utf-8") as log:
        return [json.loads(line)["aux"] for line in log]


def loads(run):
    """(tokens of the first expert, of the second) of every iteration, steps and microbatches in order."""
    with open(f"{run}.loads", "rb") as file:
        data = file.read()
    _, steps, layers, devices, microbatches, experts = HEAD.unpack_from(data)
    assert (layers, devices, experts) == (1, 1, 2), "another model"
    counts = struct.unpack_from(f"<{2 * steps * microbatches}H", data, HEAD.size)
    return list(zip(counts[::2], counts[1::2]))


def auxiliary(share, score):
    return 2 * COEFFICIENT * (share * score + (1 - share) * (1 - score))


def score_of(aux, share):
    return (aux / (2 * COEFFICIENT) - (1 - share)) / (2 * share - 1)


def main():
    alone, whole = sys.argv[1:]
    counts = loads(alone)
    assert counts == loads(whole), "the runs route differently"
    shares = [first / (first + second) for first, second in counts]
    scores = [score_of(aux, share) for aux, share in zip(losses(alone), shares)]
    assert all(0 < score < 1 for score in scores), scores
    for step, logged in enumerate(losses(whole)):
        first = second = expected = of_layers = 0
        for i in range(step * ITERATIONS, (step + 1) * ITERATIONS):
            first, second = first + counts[i][0], second + counts[i][1]
            expected += auxiliary(first / (first + second), scores[i]) / ITERATIONS
            of_layers += auxiliary(shares[i], scores[i]) / ITERATIONS
        assert abs(logged - expected) < 1e-9, f"step {step}: {logged}, not {expected}"
        assert abs(expected - of_layers) > 1e-6, "these loads cannot tell batches from layers"


if __name__ == "__main__":
    main()
