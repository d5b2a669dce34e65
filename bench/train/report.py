"""The table of compare.py, as text, Markdown and JSON."""
import json
import statistics


def median(entries, key):
    values = [entry[key] for entry in entries if entry.get(key) is not None]
    return statistics.median(values) if values else None


def summarize(row):
    """Medians over the rounds; the ratio is the median of the rounds' own ratios."""
    ratios = [ours["tokens_per_s"] / peer["tokens_per_s"] for ours, peer in zip(row["ours"], row["peer"])]
    return {"model": row["model"], "threads": row["threads"],
            "ours": median(row["ours"], "tokens_per_s"), "peer": median(row["peer"], "tokens_per_s"),
            "ratio": statistics.median(ratios) if ratios else None,
            "least": min(ratios) if ratios else None, "most": max(ratios) if ratios else None,
            "gflops": (median(row["ours"], "tokens_per_s") * row["peer"][0]["mflop_per_token"] / 1e3
                       if row["peer"] else None),
            "imbalance": median(row["ours"], "imbalance"),
            "disturbed": max(entry["disturbed"] for entry in row["ours"] + row["peer"])}


COLUMNS = (("model", "model", "{}"), ("threads", "threads", "{}"), ("ours", "hecate tok/s", "{:,.0f}"),
           ("peer", "PyTorch tok/s", "{:,.0f}"), ("ratio", "ratio", "{:.2f}"),
           ("least", "least", "{:.2f}"), ("most", "most", "{:.2f}"), ("gflops", "hecate GFLOP/s", "{:.0f}"),
           ("imbalance", "max/mean load", "{:.2f}"), ("disturbed", "disturbed", "{:.2f}"))


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
    lines = [f"# Training on the CPU: {about['cpu']}, {about['cores']} cores", "",
             f"Real: measured on this machine by bench/train/compare.py, both programs in turn, medians of "
             f"{result['rounds']} rounds of {result['steps']} steps after {result['warm']}.", "",
             table(summary), "",
             "GFLOP/s count products and full attention, as the peer counts them. Load: tokens of the "
             "busiest expert over the mean; routing is forced to be balanced on both sides. Disturbed: "
             "cores that other programs used in the worst run.", ""]
    lines += [f"- {key}: {value}" for key, value in about.items()]
    return "\n".join(lines) + "\n"


def write(result, directory, name):
    """Prints the table, writes directory/name.json and .md."""
    summary = [summarize(row) for row in result["rows"]]
    print(table(summary))
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.json").write_text(json.dumps({**result, "summary": summary}, indent=1) + "\n")
    (directory / f"{name}.md").write_text(markdown(result, summary))
    print(f"written: {directory / name}.json, .md")
