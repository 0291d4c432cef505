"""Runs the systems in turn and takes differences, so that start-up cancels.

A program is run with few sentences (one batch) and with many (one batch and N more). The difference of its CPU times
is the time of N sentences, whatever it did before, and needs no help from the program.
"""
import os
import pathlib
import subprocess
import sys

from systems import Failure

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "DNNL_NUM_THREADS")
# Small models get more sentences: half a second of difference between runs that start for as long is mostly noise.
LIGHTER = {"tiny": 4, "base-memory": 2}


class Case:
    """One row of the table."""

    def __init__(self, shape, weights, batch, threads, sentences):
        self.shape, self.weights, self.batch, self.threads = shape, weights, batch, threads
        # Whole batches only: a last one that is not full has another cost.
        wanted = sentences or max(16, 2 * batch) * LIGHTER.get(shape, 1)
        self.more = -(-wanted // batch) * batch

    def label(self):
        return f"{self.shape} {self.weights} batch {self.batch} threads {self.threads}"


def choose_cpus(threads, first):
    """The CPUs to pin to: as many as threads, the last ones unless told, because the first ones have the interrupts."""
    allowed = sorted(os.sched_getaffinity(0))
    chosen = allowed[-threads:] if first is None else [cpu for cpu in allowed if cpu >= first][:threads]
    if len(chosen) < threads:
        raise Failure(f"{threads} threads need {threads} CPUs, but only {len(chosen)} may be used: ask for fewer")
    return chosen


def run(command, source, threads, cpus, scratch):
    """{wall, cpu, peak, floor, ids}: seconds, bytes and the lines of ids."""
    out, err = scratch / "out.txt", scratch / "err.txt"
    words = [str(word) for word in command]
    helper = [sys.executable, "-I", "-S", str(pathlib.Path(__file__).with_name("child.py"))]
    environment = os.environ | {name: str(threads) for name in THREAD_VARIABLES}
    done = subprocess.run(helper + [",".join(map(str, cpus)), str(source), str(out), str(err)] + words,
                          capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise Failure(f"{' '.join(words)}\ncould not be started: {done.stderr.strip()}")
    code, wall, cpu, peak, floor = done.stdout.split()
    if code != "0":
        lines = err.read_text(errors="replace").strip().splitlines()[-5:]
        raise Failure(f"{' '.join(words)}\nended with code {code}:\n  " + "\n  ".join(lines))
    ids = [line.split() for line in out.read_text(errors="replace").splitlines()]
    return {"wall": float(wall), "cpu": float(cpu), "peak": int(peak), "floor": int(floor), "ids": ids}


def check_lengths(name, ids, count, length):
    if len(ids) != count:
        raise Failure(f"{name} wrote {len(ids)} lines for {count} sentences: are the options of this version others?")
    odd = [line for line in ids if len(line) != length]
    if odd:
        raise Failure(f"{name} wrote sentences of {len(odd[0])} ids where {length} were asked for: "
                      "rates would not be comparable")


class Runner:
    """Commands of all systems on files of sources that are written once."""

    def __init__(self, folder, sources, lengths, first_cpu, extra):
        self.folder, self.sources, self.lengths, self.first_cpu, self.extra = folder, sources, lengths, first_cpu, extra

    def translate(self, system, file, case, count):
        """The first `count` sources; 0: one source of one id, for one id."""
        path = self.folder / f"sources.{count}.txt"
        lines = self.sources[:count] if count else [self.sources[0][:1]]
        path.write_text("".join(" ".join(map(str, line)) + "\n" for line in lines))
        lengths = self.lengths if count else (2, 1)
        command = system.command(file, case.batch, case.threads, lengths)
        command += [word for name, words in self.extra if name == system.name for word in words]
        cpus = choose_cpus(case.threads, self.first_cpu)
        result = run(command, path, case.threads, cpus, self.folder)
        check_lengths(system.name, result["ids"], len(lines), lengths[1])
        # Without folders: they are of this machine only.
        return result | {"command": [pathlib.Path(word).name for word in map(str, command)]}

    def round(self, system, file, case):
        """One measurement: the two runs whose difference counts, and the one for start-up."""
        first = self.translate(system, file, case, 0)
        few = self.translate(system, file, case, case.batch)
        many = self.translate(system, file, case, case.batch + case.more)
        return {"cpu": many["cpu"] - few["cpu"], "wall": many["wall"] - few["wall"], "peak": many["peak"],
                "floor": many["floor"], "first_wall": first["wall"], "first_cpu": first["cpu"],
                "ids": many["ids"], "command": many["command"]}
