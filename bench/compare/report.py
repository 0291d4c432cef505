"""From rounds to rows, and rows to text.

A row has one cell per system where systems differ ("12 / 34 / 56": in the order of the heading).
"""
import json
from statistics import median

MB = 1e6
RAW = "cpu", "wall", "peak", "floor", "first_wall", "first_cpu"


def spread(values):
    """How far apart the extremes are, in percent of the median."""
    return 100 * (max(values) - min(values)) / median(values)


def summarize(rounds, tokens, weights_bytes):
    """What one system did in one case."""
    rates = [tokens / one["cpu"] for one in rounds]
    peak = median(one["peak"] for one in rounds)
    return {
        "target_ids_per_cpu_second": median(rates), "spread_percent": spread(rates),
        "target_ids_per_second": median(tokens / one["wall"] for one in rounds),
        "peak_mb": peak / MB, "beyond_weights_mb": (peak - weights_bytes) / MB, "weights_mb": weights_bytes / MB,
        "first_sentence_ms": 1e3 * median(one["first_wall"] for one in rounds),
        "first_sentence_cpu_ms": 1e3 * median(one["first_cpu"] for one in rounds),
        "command": rounds[-1]["command"],
        "rounds": [{key: one[key] for key in RAW} for one in rounds],
    }


def ratio(ours, theirs):
    """Of rates, round by round: two runs that were neighbours in time saw the same machine."""
    ratios = [b["cpu"] / a["cpu"] for a, b in zip(ours, theirs)]
    return {"median": median(ratios), "least": min(ratios), "most": max(ratios)}


def count_equal(ids, reference):
    return sum(a == b for a, b in zip(ids, reference))


def rows(results, names):
    """(heading, rows) of text."""
    ours, peers = names[0], names[1:]
    heading = ["model", "weights", "batch", "threads", *names, *(f"{ours} : {peer}" for peer in peers), "spread %",
               "peak MB", "beyond weights MB", "first sentence ms", "equal"]
    table = []
    for case in results:
        systems = [case["systems"].get(name) for name in names]

        def each(key, form):
            return " / ".join(format(one[key], form) if one and one[key] is not None else "-" for one in systems)

        ratios = [case["ratios"].get(peer) for peer in peers]
        table.append([case["model"], case["weights"], str(case["batch"]), str(case["threads"]),
                      *(format(one["target_ids_per_cpu_second"], ".0f") if one else "-" for one in systems),
                      *("{median:.2f} ({least:.2f}-{most:.2f})".format(**one) if one else "-" for one in ratios),
                      each("spread_percent", ".0f"), each("peak_mb", ".1f"), each("beyond_weights_mb", ".1f"),
                      each("first_sentence_ms", ".0f"), each("equal", "") + f" of {case['sentences']}"])
    return heading, table


def as_table(heading, table):
    widths = [max(len(row[i]) for row in [heading, *table]) for i in range(len(heading))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
                     for row in [heading, *table])


def as_markdown(heading, table):
    lines = [heading, ["---"] * 2 + ["---:"] * (len(heading) - 2), *table]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def text(report, form):
    if form == "json":
        return json.dumps(report, indent=1)
    names = list(report["systems"])
    write = as_markdown if form == "markdown" else as_table
    caption = (f"{report['cpu']}. Target ids per CPU-second ({', '.join(names)}), encoder included; ratios with the "
               f"least and the most of all rounds.\nOther cells: {' / '.join(names)}. "
               "Equal: sentences with the ids that dragoman gives in float32 (-: not compared).")
    return caption + "\n\n" + write(*rows(report["results"], names))
