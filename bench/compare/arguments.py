"""The command line of compare.py."""
import argparse
import shlex

import synthetic

EXAMPLES = """examples
  compare.py --ctranslate2 ~/ctranslate2/bin
  compare.py --synthetic tiny,base --batch 1,32 --ctranslate2 ~/ctranslate2/bin --marian ~/marian/build
  compare.py --synthetic base --quantize none --repeat 7 --output json --ctranslate2 ~/ctranslate2/bin > base.json
  compare.py --self-test

Exit codes: 0 measured; 1 failed, with a sentence that says why; 2 wrong use of this command."""


def listed(kind, known=None):
    def parse(given):
        values = [kind(word) for word in given.split(",")]
        for value in values:
            if known and value not in known:
                raise argparse.ArgumentTypeError(f"{value} is not one of {', '.join(known)}")
            if kind is int and value < 1:
                raise argparse.ArgumentTypeError(f"{value} is too small")
        return values
    return parse


def extra(given):
    name, colon, words = given.partition(":")
    if not colon or name not in ("dragoman", "ctranslate2", "marian", "marian-ssru"):
        raise argparse.ArgumentTypeError("begin with dragoman:, ctranslate2:, marian: or marian-ssru:")
    return name, shlex.split(words)


def arguments(description):
    parser = argparse.ArgumentParser(description=description, epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--synthetic", metavar="NAME,...", default=["tiny"], type=listed(str, synthetic.SHAPES),
        help=f"shapes: {', '.join(synthetic.SHAPES)} (default: tiny)")
    add("--quantize", metavar="int8,none", default=["int8"], type=listed(str, ["int8", "none"]),
        help="weights: int8, none = float32 (default: int8)")
    add("--batch", metavar="N,...", default=[1, 32], type=listed(int), help="sentences side by side (default: 1,32)")
    add("--threads", metavar="N,...", default=[1], type=listed(int), help="threads (default: 1)")
    add("--repeat", metavar="N", default=5, type=int, help="rounds that count; one before them does not (default: 5)")
    add("--sentences", metavar="N", type=int,
        help="sentences a figure is made of (default: two batches, at least 16; more where the model is small)")
    add("--source-length", metavar="N", default=25, type=int, help="ids of a source, eos included (default: 25)")
    add("--target-length", metavar="N", default=30, type=int, help="ids of a target (default: 30)")
    add("--cpu", metavar="N", type=int, help="first CPU to pin to (default: the last ones)")
    add("--dragoman", metavar="DIR", default="build/release",
        help="folder of dragoman and dragoman-convert (default: build/release)")
    add("--ctranslate2", metavar="PATH", help="ct2-translator or its folder (default: on PATH)")
    add("--marian", metavar="DIR", help="folder of marian-decoder and marian-conv, built with "
        "intgemm (default: on PATH)")
    add("--marian-precision", metavar="NAME", default="int8shiftAlphaAll", help="Marian's --gemm-precision for int8 "
        "weights (default: int8shiftAlphaAll, as in Firefox)")
    add("--marian-ssru", action="store_true", help="time Marian once more, with the SSRU decoder of Bergamot's "
        "students: another model, so its ids are not compared")
    add("--options", metavar="SYSTEM:WORDS", default=[], action="append", type=extra,
        help="more options for a system's command, e.g. 'dragoman:--max-source 32'; may be given several times")
    add("--no-check", action="store_true", help="do not compare the ids of all systems in float32 first")
    add("--work-dir", metavar="DIR", help="where the models go while they are needed; big takes 4 GB (default: a new "
        "folder in $TMPDIR or /tmp)")
    add("--output", choices=["table", "markdown", "json"], default="table", help="(default: table)")
    add("--self-test", action="store_true", help="test the parts that need no other program, and exit")
    return parser.parse_args()
