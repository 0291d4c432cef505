#!/usr/bin/env python3
"""Compares dragoman with other translation programs that are installed on this machine: same model, same sentences.

For each shape it makes one model of seeded random weights, writes it in every system's format, runs the systems in
turn and prints rates, ratios, memory and start-up. It builds and downloads nothing. Greedy search, no shortlist, forced
lengths; each run is pinned to as many CPUs as it may have threads. See bench/README.md for how to read the table.
"""
import pathlib
import platform
import sys
import tempfile

try:
    import numpy  # noqa: F401
except ImportError:
    sys.exit("compare.py needs numpy: install Debian's python3-numpy and run it with /usr/bin/python3")
sys.dont_write_bytecode = True  # no __pycache__ in the source tree

import report
import synthetic
from arguments import arguments
from marian import Marian, MarianSsru
from measure import Case, Runner, choose_cpus
from systems import CTranslate2, Dragoman, Failure, Missing, libraries


def say(text):
    print(text, file=sys.stderr, flush=True)


def find_systems(options):
    """dragoman first; peers that are neither given nor on PATH are left out."""
    systems = [Dragoman(options.dragoman)]
    for make in lambda: CTranslate2(options.ctranslate2), lambda: Marian(options.marian, options.marian_precision):
        try:
            systems.append(make())
        except Missing as missing:
            say(f"left out: {missing}")
    if options.marian_ssru:  # asked for, so an error if it is missing
        systems.append(MarianSsru(options.marian, options.marian_precision))
    if len(systems) == 1:
        raise Failure("no peer was found: install CTranslate2 or Marian and say where with --ctranslate2 or --marian")
    return systems


def check_float32(peers, files, runner, case, reference):
    """Proof that it is one model: float32 differs in rounding only, so nearly all sentences must be equal."""
    for system in peers:
        ids = runner.translate(system, files[system.name]["none"], case, len(reference))["ids"]
        equal = report.count_equal(ids, reference)
        say(f"{case.shape}: {system.name} in float32 gives our ids in {equal} of {len(reference)} sentences"
            + ("" if 2 * equal > len(reference) else ": this is NOT the same model, do not use the figures"))


def measure_shape(shape, systems, options, folder):
    cases = [Case(shape, weights, batch, threads, options.sentences)
             for weights in options.quantize for batch in options.batch for threads in options.threads]
    most = max(case.batch + case.more for case in cases)
    lengths = options.source_length, options.target_length
    runner = Runner(folder, synthetic.sources(most, lengths[0]), lengths, options.cpu, options.options)
    kinds = sorted(set(options.quantize) | {"none"})
    say(f"{shape}: writing the model")
    model, files = synthetic.Model(shape), {}
    checked = [] if options.no_check else [one for one in systems[1:] if one.same_model]
    for system in systems:
        needed = kinds if system is systems[0] or system in checked else options.quantize
        files[system.name] = system.prepare(model, folder / system.name, needed)
    del model

    reference_case = Case(shape, "none", 16, 1, None)
    reference = runner.translate(systems[0], files["dragoman"]["none"], reference_case, most)["ids"]
    check_float32(checked, files, runner, reference_case, reference[:16])
    rounds = {case: {name: [] for name in files} for case in cases}
    for turn in range(options.repeat + 1):
        say(f"{shape}: round {turn} of {options.repeat}" + ("" if turn else " (warms up, does not count)"))
        for case in cases:
            for system in [one for one in systems if one.name in rounds[case]]:
                one_round(runner, system, files[system.name][case.weights], case, rounds[case], turn > 0)
    comparable = [one.name for one in systems if one.same_model]
    return [result(case, rounds[case], files, reference, lengths, comparable) for case in cases]


def one_round(runner, system, file, case, rounds, counts):
    """A peer that fails loses its place in the row; the others go on."""
    try:
        if counts:
            rounds[system.name].append(runner.round(system, file, case))
        else:
            runner.translate(system, file, case, 0)
    except Failure as failure:
        if system.name == "dragoman":
            raise
        say(f"left out of {case.label()}: {system.name}: {failure}")
        del rounds[system.name]


def result(case, rounds, files, reference, lengths, comparable):
    summaries = {}
    for name, turns in rounds.items():
        weights = files[name][case.weights].stat().st_size
        summaries[name] = report.summarize(turns, case.more * lengths[1], weights)
        equal = report.count_equal(turns[-1]["ids"], reference)
        summaries[name]["equal"] = equal if name in comparable else None
    ratios = {name: report.ratio(rounds["dragoman"], turns) for name, turns in rounds.items() if name != "dragoman"}
    return {"model": case.shape, "weights": "float32" if case.weights == "none" else "int8", "batch": case.batch,
            "threads": case.threads, "sentences": case.batch + case.more, "systems": summaries, "ratios": ratios}


def cpu_name():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def main():
    options = arguments(__doc__)
    if options.self_test:
        import self_test
        return self_test.main(options.dragoman)
    if options.source_length < 2 or options.target_length < 1 or options.repeat < 1:
        raise Failure("a source needs 2 ids, a target and a repeat 1")
    systems = find_systems(options)
    choose_cpus(max(options.threads), options.cpu)
    about = {system.name: {"version": system.version(), "program": pathlib.Path(system.program).name,
                           "libraries": libraries(system.program)} for system in systems}
    if options.work_dir:
        pathlib.Path(options.work_dir).mkdir(parents=True, exist_ok=True)
    results = []
    for shape in options.synthetic:
        with tempfile.TemporaryDirectory(prefix="compare-", dir=options.work_dir) as folder:
            results += measure_shape(shape, systems, options, pathlib.Path(folder))
    print(report.text({"cpu": cpu_name(), "kernel": platform.release(), "source_length": options.source_length,
                       "target_length": options.target_length, "systems": about, "results": results}, options.output))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit(f"compare.py: {failure}")
