"""The programs that are compared: how each gets the model, and the command that translates a file of ids with it.

Every one searches greedily over the whole vocabulary, reads the same numbers from standard input and writes numbers.
"""
import os
import pathlib
import re
import shutil
import subprocess

import write_ctranslate2
import write_marianmt


class Failure(Exception):
    """A sentence for the user."""


class Missing(Failure):
    """A peer that was not asked for and is not installed."""


def find_program(given, name, option):
    """A program by its path or the folder it is in; on PATH if nothing is given."""
    if given is None:
        if found := shutil.which(name):
            return found
        raise Missing(f"{name} is not on PATH: say where it is with {option}")
    for path in (pathlib.Path(given), pathlib.Path(given) / name, pathlib.Path(given) / "bin" / name):
        if path.is_file() and path.name == name and os.access(path, os.X_OK):
            return str(path.resolve())
    raise Failure(f"there is no program {name} at {given}: give {option} the folder it is in")


def must_run(command, what):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        lines = (done.stderr + done.stdout).strip().splitlines()[-5:]
        raise Failure(f"{what} failed (exit code {done.returncode}):\n  " + "\n  ".join(lines))
    return (done.stdout + done.stderr).strip()


def libraries(program):
    """Names with versions of the libraries that do the arithmetic, as the loader would find them."""
    listing = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    paths = re.findall(r"=> (\S*lib(?:ctranslate2|dnnl|mkl|openblas|blas|cblas|gomp|iomp|omp|ruy)\S*)", listing)
    return sorted(os.path.basename(os.path.realpath(path)) for path in paths)


class Dragoman:
    name = "dragoman"
    same_model = True

    def __init__(self, folder):
        self.program = find_program(folder, "dragoman", "--dragoman")
        self.converter = find_program(folder, "dragoman-convert", "--dragoman")

    def version(self):
        return must_run([self.program, "--version"], "dragoman --version").splitlines()[0]

    def prepare(self, model, folder, kinds):
        """{weights: file}"""
        files = {kind: folder / f"{kind}.dgm" for kind in kinds}
        write_marianmt.write_folder(model, folder / "marianmt")
        for kind, file in files.items():
            # The peers round to the nearest too.
            rounding = ["--rounding", "nearest"] if kind == "int8" else []
            must_run([self.converter, "-q", folder / "marianmt", file, "--quantize", kind, *rounding],
                     "dragoman-convert")
        shutil.rmtree(folder / "marianmt")
        return files

    def command(self, file, batch, threads, lengths):
        # The others take memory as sentences come; we plan for the longest, which is known here.
        return [self.program, "translate", "-q", "--ids", "-m", file, "--max-source", max(lengths[0], 16),
                "--max-length", lengths[1], "--batch", batch, "--threads", threads]


class CTranslate2:
    name = "ctranslate2"
    same_model = True

    def __init__(self, given):
        self.program = find_program(given, "ct2-translator", "--ctranslate2")

    def version(self):
        # The command does not know its version; its library has it in its name.
        return " ".join(name for name in libraries(self.program) if "ctranslate2" in name) or "unknown"

    def prepare(self, model, folder, kinds):
        for kind in kinds:
            write_ctranslate2.write_directory(model, folder / kind, int8=kind == "int8")
        return {kind: folder / kind / "model.bin" for kind in kinds}

    def command(self, file, batch, threads, lengths):
        return [self.program, "--model", file.parent, "--batch_size", batch, "--beam_size", 1,
                "--min_decoding_length", lengths[1], "--max_decoding_length", lengths[1],
                "--inter_threads", 1, "--intra_threads", threads]
