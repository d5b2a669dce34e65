"""The table of compare.py, as text, Markdown and JSON."""
import json
import statistics

import machine

SIDES = ("ours", "torch", "again", "eager", "compile")
NEWEST = ("again", "eager", "compile")


def rates(entries):
    return [entry["tokens_per_s"] for entry in entries]


def median(entries, key):
    values = [entry[key] for entry in entries if entry.get(key) is not None]
    return statistics.median(values) if values else None


def ratio(ours, theirs):
    """The median of the rounds' own ratios, the least and the most."""
    each = [a / b for a, b in zip(rates(ours), rates(theirs))]
    return (statistics.median(each), min(each), max(each)) if each else (None, None, None)


def better(row):
    """The fastest program of the newest torch: one for all rounds."""
    known = [row[side] for side in NEWEST if row[side]]
    return max(known, key=lambda entries: statistics.median(rates(entries)), default=[])


def summarize(row, rows):
    fp32 = next((other for other in rows if other["precision"] == "fp32" and
                 (other["model"], other["threads"]) == (row["model"], row["threads"])), None)
    torch, least, most = ratio(row["ours"], row["torch"])
    mflop = next((side[0]["mflop_per_token"] for side in (row["torch"], *(row[name] for name in NEWEST)) if side), None)
    ours = median(row["ours"], "tokens_per_s")
    return {"model": row["model"], "threads": row["threads"], "precision": row["precision"],
            **{side: median(row[side], "tokens_per_s") for side in SIDES},
            "to_torch": torch, "least": least, "most": most,
            "to_fp32": ratio(row["ours"], fp32["torch"])[0] if fp32 else None,
            "to_newest": ratio(row["ours"], better(row))[0],
            "gflops": ours * mflop / 1e3 if mflop else None,
            "imbalance": median(row["ours"], "imbalance"),
            "disturbed": max(entry["disturbed"] for side in SIDES for entry in row[side])}


COLUMNS = (("model", "model", "{}"), ("threads", "threads", "{}"), ("precision", "precision", "{}"),
           ("ours", "hecate tok/s", "{:,.0f}"), ("torch", "torch tok/s", "{:,.0f}"),
           ("again", "newest, same program", "{:,.0f}"), ("eager", "newest, eager", "{:,.0f}"),
           ("compile", "newest, compiled", "{:,.0f}"),
           ("to_torch", "to torch", "{:.2f}"), ("least", "least", "{:.2f}"), ("most", "most", "{:.2f}"),
           ("to_fp32", "to torch fp32", "{:.2f}"), ("to_newest", "to newest", "{:.2f}"),
           ("gflops", "hecate GFLOP/s", "{:.0f}"), ("imbalance", "max/mean load", "{:.2f}"),
           ("disturbed", "disturbed", "{:.2f}"))


def table(summary):
    rows = [[title for _, title, _ in COLUMNS]]
    for row in summary:
        rows.append(["-" if row[key] is None else form.format(row[key]) for key, _, form in COLUMNS])
    width = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    lines = ["| " + " | ".join(cell.rjust(w) for cell, w in zip(row, width)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (w + 1) + ":" for w in width) + "|")
    return "\n".join(lines)


def markdown(result, summary):
    about = result["machine"]
    lines = [f"# Training on the CPU: {machine.title(about)}", "",
             f"Real: measured on this machine by bench/train/compare.py, all programs in turn, medians of "
             f"{result['rounds']} rounds of {result['seconds']:g} s for each program, warming up apart.", "",
             table(summary), "",
             "Ratios are hecate's speed over the other's: to torch at the same precision (bf16 by autocast), with "
             "the rounds' least and most; to torch in fp32; to the newest torch at the same precision, the "
             "fastest of the same program, newest_torch.py and that with torch.compile. GFLOP/s count products "
             "and full attention, as the peer counts them. Load: tokens of the busiest expert over the mean; routing is forced to be balanced on all sides. "
             "Disturbed: cores that other programs used in the worst run.", ""]
    lines += [f"- {key}: {value}" for key, value in about.items()]
    return "\n".join(lines) + "\n"


def write(result, directory, name):
    """Prints the table, writes directory/name.json and .md."""
    summary = [summarize(row, result["rows"]) for row in result["rows"]]
    print(table(summary))
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.json").write_text(json.dumps({**result, "summary": summary}, indent=1) + "\n")
    (directory / f"{name}.md").write_text(markdown(result, summary))
    print(f"written: {directory / name}.json, .md")
