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


def pairs_of(case, names):
    return [(p, q, case[p], case[q]) for p, q in itertools.combinations(names, 2)]


def pairs(dimensions, valid, free=(), tries=64):
    """Cases that together have every pair of values that any valid case has. Each is the one with most missing pairs among
    `tries` that have the first missing one; the same in every run. `free`: dimensions that `valid` does not look at."""
    names, draw = list(dimensions), random.Random(1)
    bound = list(product({name: values for name, values in dimensions.items() if name not in free}, valid))
    missing = {}  # A dict, as an ordered set.
    if bound:
        missing = dict.fromkeys(pair for case in bound for pair in pairs_of(case, list(case)))
        occur = {name: dict.fromkeys(case.get(name) for case in bound) for name in names} | {name: dimensions[name] for name in free}
        missing |= dict.fromkeys((p, q, a, b) for p, q in itertools.combinations(names, 2) if p in free or q in free
                                 for a, b in itertools.product(occur[p], occur[q]))
    while missing:
        p, q, a, b = next(iter(missing))
        having = [case for case in bound if case.get(p, a) == a and case.get(q, b) == b]
        best = None
        for _ in range(tries):
            drawn = draw.choice(having) | {name: draw.choice(dimensions[name]) for name in free} | {p: a, q: b}
            found = [pair for pair in pairs_of(drawn, names) if pair in missing]
            if best is None or len(found) > len(best[1]):
                best = drawn, found
        for pair in best[1]:
            del missing[pair]
        yield {name: best[0][name] for name in names}


if __name__ == "__main__":  # Its own test.
    dims = {"a": [1, 2, 4], "b": [1, 2, 4], "c": "xyz", "d": [False, True]}
    chosen = list(pairs(dims, lambda case: case["b"] <= case["a"]))
    everything = list(product(dims, lambda case: case["b"] <= case["a"]))
    assert len(everything) == 6 * 3 * 2 and len(chosen) <= 12, len(chosen)
    for p, q in itertools.combinations(dims, 2):
        assert {(c[p], c[q]) for c in chosen} == {(c[p], c[q]) for c in everything}, (p, q)
    for free in (("c",), ("c", "d")):
        chosen = list(pairs(dims, lambda case: case["b"] <= case["a"], free))
        for p, q in itertools.combinations(dims, 2):
            assert {(c[p], c[q]) for c in chosen} == {(c[p], c[q]) for c in everything}, (free, p, q)
    assert not list(pairs(dims, lambda case: False, ("d",)))
    turned = list(turns(dims, lambda case: case["b"] <= case["a"], ("a", "b")))
    assert len(turned) == 6 and {(c["c"], c["d"]) for c in turned} == set(itertools.product("xyz", [False, True]))
    assert all(c["b"] <= c["a"] for c in chosen)
