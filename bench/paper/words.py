"""The page's words, and the order of its sections."""
import plan

SECTIONS = {
    "End to end": ("Simulated", "Bars are geometric means over the models. EP with free links is EP whose messages take no time but "
                   "their latency: no deduplication of rows and no overlap can make EP faster than that."),
    "Several iterations a step": ("Simulated", "GPT-MoE-S, loads EP 2: gradients are accumulated over iterations. FSSDP, quota, LAER, FSDP and EP in nodes may keep "
                                  "replicas for the whole step (`parallel.placement.lifetime`); the timeline chooses."),
    "Layer by layer": ("Simulated", "The time that a mean device spends on a layer's experts, waiting included, forward and backward. The paper, "
                       "GPT-MoE-S on B, over EP: 2.8 to 18.8, geometric mean 11.87."),
    "Where the time goes": ("Simulated", "The critical path: from the step's end back along what was waited for, at each moment a device's own "
                            "work or a transfer. *gather* and *reduce*: parameters and gradients of experts; *dense*: sums of what all devices have."),
    "Memory": ("Summed by the compiler", "All of a device's memory, as `--explain=memory` prints it."),
    "Ablations": ("Simulated", "One change at a time."),
    "Re-shard interval": ("Simulated", "Speed over EP, GPT-MoE-S on B, 100 iterations of recorded loads from step 151 on. The paper: 1.34 to 1.42 for 10 to "
                          "100 iterations."),
    "Batch": ("Simulated", "GPT-MoE-S on B, loads EP 2."),
    "More devices, more experts": ("Simulated", "GPT-MoE-S with nodes of cluster B and more experts; loads: Zipf 1.2, drifting, which is far more skewed than the "
                                   "tables above. On more than 64 devices messages are sums through ports."),
    "Nodes of 8 and of 72 devices": ("Simulated", "The same 288 devices and experts, in nodes of 8 and in NVLink domains of 72; Zipf 1.2."),
}
METHODS = {"End to end": "end_to_end", "Several iterations a step": "accumulated", "Layer by layer": "per_layer",
           "Where the time goes": "breakdown", "Memory": "memory", "Ablations": "ablations", "Re-shard interval": "intervals",
           "Batch": "batches"}


def how(page):
    fit = page.bench.fit
    page.add("# The paper's evaluation, simulated", "",
             "`hecatec --simulate --target=cuda` repeats the measurements of the FSSDP paper (Hecate, arXiv:2502.02581) on two clusters.",
             "It has the same four models on the same clusters, under ten rivals, the paper's FSSDP, and `quota`, hecate's own policy. "
             "**No cluster has run this.** Every table is marked as *simulated* (the compiled program of each device in virtual time, "
             "[simulate](simulate.md)), *emulated* (real bytes over shaped links, kernels wait), or *real*.", "",
             "    python3 bench/paper/paper.py --recording LOADS      # all of it; --quick: two models, two loads", "",
             "writes this page. Results are kept in `build/paper`, so a second run simulates only changes.", "",
             "- FSSDP is policy `hecate`: the paper's algorithms 1 and 2, rows split evenly. quota is `fssdp`, the default.",
             "- A load `EP 1.3` is one with which expert parallelism's fullest device has 1.3 times the mean rows. Published figures for EP lie between "
             f"1.1 and 4. The rows are drawn with drift {fit['drift']} and bias {fit['bias']} of devices, as the recording has them.",
             "- The ideal is the larger of two bounds: the step in which all loads are even and neither rows nor experts travel, and the least time of "
             "the nodes' network links, where each expert that a node lacks costs the cheaper of the node's rows and of the expert with its gradient.", "")


def verdict(page):
    losses = page.losses()
    page.section("Where it loses", "Simulated", f"All configurations of the tables below in which a rival is more than 1 % faster than quota: {len(losses)}, where "
                 f"{len(page.n.every()) * len(page.n.loads)} have one iteration a step.")
    if losses:
        from page import table
        page.add(*table(["", "quota, ms", "best rival, ms", "times as long"], losses))
    page.section("At a glance", "Simulated", "\"Over\" is times as fast: geometric mean over the four models, in brackets the least of them. "
                 "The paper measured FSSDP over EP: 1.34 to 1.78 on A, 1.26 to 1.70 on B; it does not state EP's imbalance.")
    page.judged()


def assumptions(page):
    first = plan.WINDOWS["recorded"][0]
    step = 1 + 10 * first if first < 40 else 391 + 60 * (first - 39)
    page.add("## Assumptions", "",
             "- **Machines**: [paper-a.moe](../examples/clusters/paper-a.moe) and [paper-b.moe](../examples/clusters/paper-b.moe): nodes, devices "
             "and bandwidths of the paper, data sheets for the rest; kernels at half of the peak or 70 % of the memory's bandwidth, links at "
             "95 %. Nothing was fitted to the paper's figures.",
             "- **Models**: width, layers, experts and sequence length of the paper's table 1 (examples/*.moe); 32 experts on 16 GPUs. The paper's "
             "batch is not known to us; here an iteration has 8,192 tokens (GPT) or 4,096 (BERT) of a device. A step has one iteration unless a "
             "table says otherwise.",
             f"- **Recorded loads**: a recording of another model (SmartMoE's artifact: 24 layers, 32 experts, 16 devices, from step {step} on, where "
             "stored steps are 60 apart, four microbatches each). For 64 experts two recorded layers lie side by side, at a distance of half the depth; for "
             "32 devices each recorded device's rows are divided over two. The most loaded expert has 11 to 13 times the mean, EP's fullest "
             "device 7 times: far more than is published for balanced training.",
             "- **Choices**: owners, t and m of every policy come from loads *before* those that are "
             f"simulated. {plan.STEPS} steps are simulated; the first, which has no forecast, is left out of means.",
             "- **Same program for all**: dense parts, sums, optimizer, counts and waves are hecate's under every policy. The rivals are their "
             "placement algorithms and collectives as [planner](planner.md) states them, not their code. EP in nodes "
             "gives every node all experts and sums gradients over nodes. EP sends a row once for each of a token's experts; systems that "
             "send it once a node are between EP and EP with free links.",
             "- Everything in [simulate](simulate.md#assumptions). Its mean error against real bytes is 6 % "
             "([simulated-steps](../bench/results/simulated-steps.md)).", "")


def compose(page):
    how(page)
    verdict(page)
    assumptions(page)
    for title, (kind, text) in SECTIONS.items():
        if title == "Layer by layer" and not page.n.quick:
            page.section("16 GPUs of A", "Simulated", "The paper's smaller cluster; it measured 1.40 to 1.58 for FSSDP over EP.")
            page.small()
        page.section(title, kind, text)
        if title in METHODS:
            getattr(page, METHODS[title])()
        else:
            page.growth(plan.DOMAINS if "72" in title else plan.GROWTH)
    page.add("## Emulated and real", "", "Policies with real bytes over shaped links: [fssdp-emulated](../bench/results/fssdp-emulated.md). Two real nodes: "
             "[fssdp-real-2x1](../bench/results/fssdp-real-2x1.md), [two-nodes](../bench/results/two-nodes.md). Several GPUs have not been measured.")
