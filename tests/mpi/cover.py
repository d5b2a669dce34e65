"""Cases of several dimensions: dicts from the name of a dimension to one of its values."""
import itertools
import random


def product(dimensions, valid):
    """Every valid case, in the order of the values."""
    for values in itertools.product(*dimensions.values()):
        case = dict(zip(dimensions, values))
        if valid(case):
            yield case


def turns(dimensions, valid, core):
    """Every valid combination of the dimensions in `core`; those of the others take turns."""
    inside = {name: values for name, values in dimensions.items() if name in core}
    outside = {name: values for name, values in dimensions.items() if name not in core}
    rest = list(product(outside, lambda case: True))
    for number, case in enumerate(product(inside, valid)):
        yield {name: (case | rest[number % len(rest)])[name] for name in dimensions}


def first_appearances(cases):
    """Pairs of values, (place, place, value, value), and the number of the first case that has them."""
    first = {}
    # Cases of one prefix follow each other: the first of them tells all pairs of the prefix.
    prefixes = {case: number for number, case in enumerate(cases)}
    for j in reversed(range(len(cases[0]))):
        shorter = {}
        for prefix, number in prefixes.items():
            shorter.setdefault(prefix[:j], number)
            for i in range(j):
                pair = (i, j, prefix[i], prefix[j])
                if pair not in first:
                    first[pair] = number
        prefixes = shorter
    return first


def pairs(dimensions, valid, tries=64):
    """Cases that together have every pair of values that any valid case has. Each is the one with most
    missing pairs among `tries` that have the first missing one; the same in every run."""
    names = list(dimensions)
    cases = [tuple(case[name] for name in names) for case in product(dimensions, valid)]
    places = list(itertools.combinations(range(len(names)), 2))
    first = first_appearances(cases)
    # A dict, as an ordered set.
    missing = dict.fromkeys(sorted(first, key=lambda pair: (first[pair], pair[:2])))
    draw = random.Random(1)
    while missing:
        i, j, a, b = next(iter(missing))
        having = [case for case in cases if case[i] == a and case[j] == b]
        having = draw.sample(having, min(tries, len(having)))
        best = max(having, key=lambda c: sum((i, j, c[i], c[j]) in missing for i, j in places))
        for i, j in places:
            missing.pop((i, j, best[i], best[j]), None)
        yield dict(zip(names, best))


if __name__ == "__main__":  # Its own test.
    dims = {"a": [1, 2, 4], "b": [1, 2, 4], "c": "xyz", "d": [False, True]}
    chosen = list(pairs(dims, lambda case: case["b"] <= case["a"]))
    everything = list(product(dims, lambda case: case["b"] <= case["a"]))
    assert len(everything) == 6 * 3 * 2 and len(chosen) <= 12, len(chosen)
    for p, q in itertools.combinations(dims, 2):
        assert {(c[p], c[q]) for c in chosen} == {(c[p], c[q]) for c in everything}, (p, q)
    turned = list(turns(dims, lambda case: case["b"] <= case["a"], ("a", "b")))
    assert len(turned) == 6 and {(c["c"], c["d"]) for c in turned} == set(itertools.product("xyz", [False, True]))
    assert all(c["b"] <= c["a"] for c in chosen)
