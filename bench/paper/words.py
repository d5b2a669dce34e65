"""The page's words, and the order of its sections."""
import plan


def how(page):
    fit = page.bench.fit
    page.add("# The paper's evaluation, simulated", "",
             "`hecatec --simulate` repeats the measurements of the FSSDP paper (Hecate, arXiv:2502.02581) on two clusters.",
             "It has the same four models on the same clusters, with EP, FasterMoE, SmartMoE, FlexMoE, the paper's FSSDP,",
             "and `quota`, hecate's own policy. **No cluster has run this.**",
             "Every table is marked as *simulated* (the compiled program of each device in virtual time, [simulate](simulate.md)),",
             "*emulated* (real bytes over shaped links, kernels wait), or *real*.", "",
             "    python3 bench/paper/paper.py --recording LOADS      # all of it; --quick: two models, late loads", "",
             "writes this page. Results are kept in `build/paper`, so a second run simulates only changes.", "",
             f"FSSDP is policy `hecate` (the paper's algorithms 1 and 2, rows split evenly), -RM re-materialized;",
             f"quota is `fssdp`, the default. Drawn loads: Zipf {fit['skew']}, drift {fit['drift']}, bias {fit['bias']}.", "")


def assumptions(page):
    early, late = (f"{1 + 10 * first if first < 40 else 391 + 60 * (first - 39)}" for first in (plan.WINDOWS["early"][0], plan.WINDOWS["late"][0]))
    page.add("## Assumptions", "",
             "- **Machines**: [paper-a.moe](../examples/clusters/paper-a.moe) and [paper-b.moe](../examples/clusters/paper-b.moe): nodes, devices "
             "and bandwidths of the paper, data sheets for the rest; kernels at half of the peak or 70 % of the memory's bandwidth, links at "
             "95 %. Nothing was fitted to the paper's figures.",
             "- **Models**: width, layers, experts and sequence length of the paper's table 1 (examples/*.moe); 32 experts on 16 GPUs. Batch: the "
             "paper's is not known to us; here 8,192 tokens (GPT) or 4,096 (BERT) of a device and step, one iteration a step.",
             "- **Loads**: a recording of another model (SmartMoE's artifact: 24 layers, 32 experts, 16 devices, every tenth, later every 60th "
             f"step, four microbatches each), from step {late} (late) and step {early} (early) on. For 64 experts two recorded layers lie side "
             "by side, at a distance of half the depth; for 32 devices each recorded device's rows are divided over two. So the most loaded expert has as "
             "many times the mean as recorded. Microbatches stand for iterations; every fourth one is a jump of 10 or 60 steps.",
             "- **Drawn loads**: `hecate-replay --synthesize` with the recording's skew, drift and device bias (late).",
             "- **Choices**: owners, t and m of every policy come from loads recorded *before* those that are "
             f"simulated. {plan.STEPS} iterations are simulated; the first, which has no forecast, is left out of means.",
             "- **Same program for all**: dense parts, sums, optimizer, counts and waves are hecate's under every policy. The rivals are their "
             "placement algorithms and collectives as [planner](planner.md) states them, not their code.",
             "- Everything in [simulate](simulate.md#assumptions). Its mean error against real bytes is 6 % "
             "([simulated-steps](../bench/results/simulated-steps.md)).", "")


def compose(page):
    how(page)
    page.section("At a glance", "Simulated", "Geometric means over loads; \"over\" is times as fast.")
    page.judged()
    page.add(*VERDICT, "")
    assumptions(page)
    page.section("End to end", "Simulated", "Geometric means over all loads; dashed lines bound the paper's measurements.")
    page.end_to_end()
    page.section("Layer by layer", "Simulated", "The time that a mean device spends on a layer's experts, waiting included, forward and backward. The paper, "
                 "GPT-MoE-S on B, over EP: 2.8 to 18.8, geometric mean 11.87.")
    page.per_layer()
    page.section("Where the time goes", "Simulated", "The critical path: from the step's end back along what was waited for, at each moment a device's "
                 "own work or a transfer. *gather* and *reduce*: parameters and gradients of experts; *dense*: sums of what all devices have.")
    page.breakdown()
    page.section("Memory", "Counted as the paper counts", "Without temporaries. The paper: +64 % for FSSDP, +11.6 % re-materialized.")
    page.memory()
    page.section("Ablations", "Simulated")
    page.ablations()
    page.section("Re-shard interval", "Simulated", "Speed over EP, GPT-MoE-S on B, 100 iterations of loads from step 151 on. The paper: 1.34 to 1.42 for 10 to 100 iterations.")
    page.intervals()
    page.section("Batch", "Simulated")
    page.batches()
    page.section("More devices, more experts", "Simulated", "GPT-MoE-S with nodes of cluster B and more experts; loads: Zipf 1.2, drifting. On more "
                 "than 64 devices messages are sums through ports.")
    page.growth()
    page.section("Other policies", "Simulated", "GPT-MoE-S.")
    page.others()
    page.add("## Emulated and real", "", "Policies with real bytes over shaped links: [fssdp-emulated](../bench/results/fssdp-emulated.md). Two real nodes: "
             "[fssdp-real-2x1](../bench/results/fssdp-real-2x1.md), [two-nodes](../bench/results/two-nodes.md). Several GPUs have not been measured.")


VERDICT = [
    "- **Over EP** the paper's speedups are passed by far. That says more of the loads than of the systems: in the recording the most loaded "
    "expert has 11 to 13 times the mean and EP's fullest device 7 times, where the paper's own EP must have been better balanced. The "
    "order of policies is the point of comparison.",
    "- **Over the best baseline** A and B stay below the paper's means. The best baseline here is FlexMoE on most loads, whose copies are "
    "placed by the first simulated iterations, so younger than they would be on average; and the recording drifts slowly, the drawn loads more slowly still.",
    "- **1.2 times every rival**: so over EP, FasterMoE, SmartMoE, FlexMoE and FSSDP re-materialized; not over FSSDP with replicas kept, "
    "which runs here with hecate's calibration, schedules, prefetch and sums, and takes more memory.",
    "- **97 % of the ideal** is not reached. The ideal is the least of two steps in which all loads are even and parameters cost nothing: EP's, and one "
    "in which every row is computed where its token is. The second one always wins, as it sends no row, and no plan that pays for its "
    "parameters can come near: on A a node's network carries a chunk and its gradient in 1.1 ms, and a layer of GPT-MoE-S computes for "
    "16 ms, forward and backward. The critical path below says where the rest is: rows, which hide behind nothing, and "
    "parameters and gradients beyond those that computation hides. Against balanced EP, which pays for rows, hecate is more than twice as fast.",
    "- **Not independent**: that an import has to be worth its bytes once, and not twice as before, "
    "was found on the loads from which these plans are made. With twice, quota was 0.98 times as fast as FSSDP in a part of these runs. "
    "With real bytes on the emulated cluster and other loads (zipf:1.2) steps were 7 % longer with twice where few chunks may enter a node, else the same.",
]
