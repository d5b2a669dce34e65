"""Sums of results, for tables and pictures."""
import math

import plan


class Numbers:
    def __init__(self, results, quick):
        self.results, self.quick = results, quick
        self.models = list(dict.fromkeys(each.model for each in plan.main_specs(quick)))
        self.clusters = list(dict.fromkeys(each.cluster for each in plan.main_specs(quick)))
        wanted = dict.fromkeys(each.loads for each in plan.main_specs(quick) if each.loads in plan.LOADS)
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

    def faster(self, model, cluster, name, than, loads=None, table=None):
        """How many times as fast as a policy; the geometric mean over loads."""
        ratios = []
        for which in [loads] if loads else self.loads:
            mine = self.us(plan.spec(model, cluster, name, which, table))
            other = self.us(plan.spec(model, cluster, than, which))
            if mine and other:
                ratios.append(other / mine)
        return geometric(ratios)

    def bounds(self, model, cluster):
        """Steps with even loads: under expert parallelism; and where every row is computed where its token is."""
        return [self.us(plan.spec(model, cluster, "EP", kind, steps=2)) for kind in ("balanced", "local")]

    def of_bound(self, model, cluster, name, which):
        """[of the balanced step, of the least]: shares of speed."""
        mine = self.us(plan.spec(model, cluster, name, which))
        balanced, local = self.bounds(model, cluster)
        return mine and (balanced / mine, min(balanced, local) / mine)

    def every(self):
        return [(cluster, model) for cluster in self.clusters for model in self.models]

    def against(self, name, rival, clusters=None):
        """Geometric mean over all configurations."""
        return geometric([r for c, m in self.every() if not clusters or c in clusters
                          for r in [self.faster(m, c, name, rival)] if r])


def geometric(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def states(result):
    """The paper's count, in bytes: parameters, gradients and optimizer states of a device, replicas as the policy's
    authors hold them, without saved values and temporaries."""
    memory = result["paper_memory"]
    return memory["experts"] + memory["replicas"] + memory["rest"]
