"""Sums of results, for tables and pictures."""
import math

import plan


class Numbers:
    def __init__(self, results, quick):
        self.results, self.quick = results, quick
        main = list(plan.main_specs(quick))
        self.models = list(dict.fromkeys(each.model for each in main))
        self.clusters = list(dict.fromkeys(each.cluster for each in main))
        wanted = dict.fromkeys(each.loads for each in main if each.loads in plan.LOADS)
        self.loads = [which for which in wanted if self.get(plan.spec(self.models[0], self.clusters[0], "EP", which))]

    def get(self, spec):
        return self.results.get(spec.key)

    def steps(self, spec):
        """Those behind the first, which has no forecast."""
        result = self.get(spec)
        return result and (result["steps"][1:] or result["steps"])

    def us(self, spec):
        """The mean step, with its part of a change of owners."""
        steps = self.steps(spec)
        return steps and sum(step["us"] for step in steps) / len(steps) + self.owners_us(spec)

    def owners_us(self, spec):
        """A mean step's part of a change of owners that none of the simulated steps has."""
        owners = self.get(spec)["new_owners"]
        return owners["us_of_a_step"] if owners and not owners["changes"] else 0

    def path(self, spec):
        steps = self.steps(spec)
        if not steps:
            return None
        path = {part: sum(step["path_us"][part] for step in steps) / len(steps) / 1e3 for part in steps[0]["path_us"]}
        return path | {"states": path["states"] + self.owners_us(spec) / 1e3}

    def mean(self, spec, key):
        steps = self.steps(spec)
        return steps and sum(step[key] for step in steps) / len(steps)

    # ---- of the four models

    def every(self):
        return [(cluster, model) for cluster in self.clusters for model in self.models]

    def ratio(self, model, cluster, name, than, which, **rest):
        """How many times as fast as a policy."""
        mine, other = (self.us(plan.spec(model, cluster, each, which, **rest)) for each in (name, than))
        return mine and other and other / mine

    def over(self, name, than, which, clusters):
        """Ratios of all models; `than`: a policy, or None for the best rival."""
        found = []
        for cluster in clusters:
            for model in self.models:
                rival = than or self.best(model, cluster, which)[0]
                ratio = rival and self.ratio(model, cluster, name, rival, which)
                found += [ratio] if ratio else []
        return found

    def best(self, model, cluster, which, **rest):
        """The fastest rival, and its microseconds."""
        known = [(us, name) for name in plan.RIVALS for us in [self.us(plan.spec(model, cluster, name, which, **rest))] if us]
        return min(known)[::-1] if known else (None, None)

    def ideal(self, model, cluster, which, iterations=1):
        """The larger of two bounds: the step with even loads that sends no row and no expert, and the network's."""
        even = self.us(plan.local(model, cluster, iterations=iterations))
        some = self.get(plan.spec(model, cluster, "EP", which, iterations=iterations))
        return even and some and max(even, some["network_us"])

    def of_ideal(self, name, which, clusters):
        found = []
        for cluster in clusters:
            for model in self.models:
                mine, ideal = self.us(plan.spec(model, cluster, name, which)), self.ideal(model, cluster, which)
                found += [ideal / mine] if mine and ideal else []
        return found


def geometric(ratios):
    ratios = [ratio for ratio in ratios if ratio]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None
