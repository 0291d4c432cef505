"""Tests of the parts that need no peer: compare.py --self-test [--dragoman DIR], in a few seconds."""
import io
import json
import pathlib
import struct
import tempfile

import numpy

import report
import synthetic
import write_ctranslate2
import write_marian
import write_marianmt
from measure import Case, check_lengths, choose_cpus, run
from systems import Dragoman, Failure


def small_model():
    synthetic.SHAPES["test"] = (2, 1, 32, 64, 4)
    return synthetic.Model("test")


def test_model():
    model, again = small_model(), small_model()
    assert all(numpy.array_equal(model[name], again[name]) for name in model.tensors), "not the same twice"
    assert not model["model.shared.weight"][synthetic.PAD].any()
    assert synthetic.sources(3, 25) == synthetic.sources(5, 25)[:3], "more sources must begin as fewer do"


def test_marianmt(folder):
    model = small_model()
    write_marianmt.write_folder(model, folder)
    data = (folder / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    begin, end = header["model.decoder.layers.0.fc2.weight"]["data_offsets"]
    stored = numpy.frombuffer(data[8 + length + begin:8 + length + end], numpy.float32)
    assert numpy.array_equal(stored.reshape(32, 64), model["model.decoder.layers.0.fc2.weight"])
    assert write_marianmt.field(1, 300) == b"\x08\xac\x02"  # the example of protobuf's own documentation is 150
    assert len(json.loads((folder / "vocab.json").read_text())) == synthetic.PIECES


def test_ctranslate2(folder):
    model = small_model()
    values, aliases = write_ctranslate2.variables(model)
    assert values["encoder/layer_1/self_attention/linear_0/weight"].shape == (96, 32)
    assert all(name in values for name in aliases.values())
    small = write_ctranslate2.quantized(values)
    weight, scale = small["decoder/embeddings/weight"], small["decoder/embeddings/weight_scale"]
    error = numpy.abs(weight / scale[:, None] - model["model.shared.weight"]).max(axis=1)
    assert (error * scale <= 0.5001).all(), "rounding is off by more than a half"
    write_ctranslate2.write_directory(model, folder, int8=True)
    assert (folder / "model.bin").read_bytes()[:6] == struct.pack("<IH", 6, len("TransformerSpec") + 1)


def test_marian(folder):
    model = small_model()
    write_marian.write_model(model, folder)
    with numpy.load(io.BytesIO((folder / "model.npz").read_bytes())) as stored:
        assert numpy.array_equal(stored["decoder_l1_ffn_W2"], model["model.decoder.layers.0.fc2.weight"].T)
        assert stored["special:model.yml"].tobytes().endswith(b"\0")
    write_marian.write_model(model, folder, ssru=True)
    with numpy.load(io.BytesIO((folder / "model.npz").read_bytes())) as stored:
        assert stored["decoder_l1_rnn_W"].shape == stored["decoder_l1_rnn_Wf"].shape == (32, 32)
        assert "encoder_l1_self_Wq" in stored and "decoder_l1_self_Wq" not in stored, "only the decoder has an SSRU"
        assert b"ssru" in stored["special:model.yml"].tobytes()


def test_report():
    ours = [{"cpu": 1.0, "wall": 1.1, "peak": 50e6, "floor": 0, "first_wall": 0.1, "first_cpu": 0.1, "command": []}] * 3
    theirs = [one | {"cpu": cpu} for one, cpu in zip(ours, (2.0, 3.0, 2.5))]
    assert report.ratio(ours, theirs) == {"median": 2.5, "least": 2.0, "most": 3.0}
    summary = report.summarize(theirs, 100, 20e6)
    assert summary["target_ids_per_cpu_second"] == 40 and summary["beyond_weights_mb"] == 30
    case = {"model": "tiny", "weights": "int8", "batch": 1, "threads": 1, "sentences": 17, "ratios": {},
            "systems": {"dragoman": summary | {"equal": 17}}}
    heading, table = report.rows([case], ["dragoman", "marian"])
    assert len(heading) == len(table[0]) and "-" in table[0], "a peer that is missing leaves a dash"
    case["systems"]["marian"] = summary | {"equal": None}
    assert report.rows([case], ["dragoman", "marian"])[1][0][-1] == "17 / - of 17", "so does another model's equal"
    assert report.as_markdown(heading, table).count("\n") == 2


def test_measure(folder):
    assert Case("base", "int8", 32, 1, None).more == 64 and Case("tiny", "int8", 32, 1, 33).more == 64
    (folder / "in").write_text("3 4\n")
    done = run(["cat"], folder / "in", 1, choose_cpus(1, None), folder)
    assert done["ids"] == [["3", "4"]] and 0 < done["peak"] < 30e6, "the peak must be the child's, not ours"
    for bad in (lambda: run(["no-such-program"], folder / "in", 1, choose_cpus(1, None), folder),
                lambda: check_lengths("x", [["1"]], 1, 2)):
        try:
            bad()
        except Failure:
            continue
        raise AssertionError("a fault was not seen")


def test_converts(folder, dragoman):
    """dragoman-convert takes what we write, and dragoman what it makes of that."""
    for kind, file in dragoman.prepare(small_model(), folder, ["int8", "none"]).items():
        (folder / "in").write_text("3 4 5\n")
        command = [dragoman.program, "translate", "-q", "-m", file, "--ids", "--max-length", "4"]
        done = run(command, folder / "in", 1, choose_cpus(1, None), folder)
        assert len(done["ids"]) == 1 and len(done["ids"][0]) == 4, f"{kind}: {done['ids']}"


def main(folder=None):
    if folder:
        with tempfile.TemporaryDirectory() as work:
            test_converts(pathlib.Path(work), Dragoman(folder))
    test_model()
    test_report()
    for test in test_marianmt, test_ctranslate2, test_marian, test_measure:
        with tempfile.TemporaryDirectory() as folder:
            test(pathlib.Path(folder))
    print("self-test passed")
    return 0
