"""Marian: marian-decoder and marian-conv, built with intgemm."""
import re
import statistics
import subprocess

import synthetic
import write_marian
from systems import find_program, must_run


class Marian:
    name = "marian"
    same_model = True
    ssru = False

    def __init__(self, folder, precision):
        self.program = find_program(folder, "marian-decoder", "--marian")
        self.converter = find_program(folder, "marian-conv", "--marian")
        self.precision = {"none": "float32", "int8": precision}

    def version(self):
        return must_run([self.program, "--version"], "marian-decoder --version").splitlines()[-1]

    def prepare(self, model, folder, kinds):
        write_marian.write_model(model, folder, ssru=self.ssru)
        if "int8" in kinds and "Alpha" in self.precision["int8"]:
            write_marian.write_model(model, folder, self._alphas(folder), self.ssru)
        for kind in kinds:
            must_run([self.converter, "-f", folder / "model.npz", "-t", folder / f"model.{kind}.bin",
                      "--gemm-type", "intgemm8" if kind == "int8" else "float32"], "marian-conv")
        (folder / "model.npz").unlink()
        return {kind: folder / f"model.{kind}.bin" for kind in kinds}

    def command(self, file, batch, threads, lengths):
        # The limit is a factor of the source's length; half an id less than asked for is safe from rounding.
        # 128 MB of workspace is what Bergamot's models are shipped with; the default is 512.
        vocabulary = file.parent / "vocab.txt"
        kind = "int8" if "int8" in file.name else "none"
        return [self.program, "--models", file, "--vocabs", vocabulary, vocabulary, "--beam-size", 1,
                "--mini-batch", batch, "--maxi-batch", 1, "--max-length-factor", (lengths[1] - 0.5) / lengths[0],
                "--cpu-threads", threads, "--workspace", 128, "--skip-cost", "--quiet", "--quiet-translation",
                "--gemm-precision", self.precision[kind]]

    def _alphas(self, folder):
        """{tensor: scale of what it is multiplied with}, from Marian's own statistics of a few sentences.

        Models of Bergamot and Firefox have them: then no product looks for the largest activation first. Marian prints
        the largest of every call; its scripts take the mean and 1.1 standard deviations of these.
        """
        sources = "".join(" ".join(map(str, line)) + "\n" for line in synthetic.sources(4, 25))
        command = self.command(folder / "model.npz", 4, 1, (25, 30)) + ["--dump-quantmult"]
        done = subprocess.run([str(word) for word in command], input=sources, capture_output=True, text=True)
        largest = {}
        for name, value in re.findall(r"Name: (?:\w+::)?(\w+_QuantMultA) .*MaxAbs: (\S+)", done.stderr):
            largest.setdefault(name, []).append(float(value))
        alphas = {name: 127 / (statistics.mean(values) + 1.1 * statistics.pstdev(values))
                  for name, values in largest.items()}
        # The output layer is called by either name, with and without a shortlist.
        for name, other in ("Wemb", "none"), ("none", "Wemb"):
            if name + "_QuantMultA" in alphas:
                alphas.setdefault(other + "_QuantMultA", alphas[name + "_QuantMultA"])
        return alphas


class MarianSsru(Marian):
    """The decoder of Bergamot's and Firefox's students, which costs less than self-attention. It is another model: its
    time is of interest, its ids are compared with nothing."""
    name = "marian-ssru"
    same_model = False
    ssru = True
