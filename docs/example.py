#!/usr/bin/env python3
"""Translates lines from Python with nothing but the standard library. Usage: example.py MODEL.dgm TEXT...

The library is libdragoman.so where the system finds it, or the file that DRAGOMAN_LIBRARY names."""
import ctypes
import ctypes.util
import os
import sys

ABI = 1  # what the structs below were written for


class Error(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char * 480)]


class Limits(ctypes.Structure):  # 0: choose for me
    _fields_ = [(name, ctypes.c_uint32) for name in ("slots", "source", "target", "positions", "threads")]


class Plan(ctypes.Structure):
    _fields_ = [("limits", Limits), ("bytes", ctypes.c_size_t), ("output_bytes", ctypes.c_size_t),
                ("window_bytes", ctypes.c_size_t)]


class Result(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_size_t), ("flags", ctypes.c_uint32), ("source_ids", ctypes.c_size_t),
                ("target_ids", ctypes.c_size_t), ("score", ctypes.c_double)]


TRUNCATED = 256  # DRAGOMAN_TRUNCATED


def load():
    path = os.environ.get("DRAGOMAN_LIBRARY") or ctypes.util.find_library("dragoman")
    if not path:
        raise RuntimeError("libdragoman.so not found: name it in DRAGOMAN_LIBRARY")
    library = ctypes.CDLL(path)
    if library.dragoman_abi_version() != ABI:
        raise RuntimeError(f"{path} has ABI {library.dragoman_abi_version()}, these structs are of {ABI}")
    handle, error, text = ctypes.c_void_p, ctypes.POINTER(Error), ctypes.c_char_p
    for name, result, arguments in (
            ("open", ctypes.c_int, [text, ctypes.c_int, ctypes.POINTER(handle), error]),
            ("make_plan", ctypes.c_int, [handle, ctypes.POINTER(Limits), ctypes.POINTER(Plan), error]),
            ("start", ctypes.c_int, [handle, ctypes.POINTER(Plan), text, handle, ctypes.POINTER(handle), error]),
            ("translate", ctypes.c_int,
             [handle, text, ctypes.c_size_t, handle, text, ctypes.c_size_t, ctypes.POINTER(Result)]),
            ("stop", None, [handle]),
            ("close", None, [handle])):
        function = getattr(library, "dragoman_" + name)
        function.restype, function.argtypes = result, arguments
    return library


class Translator:
    """One model and one translator. One thread at a time; ctypes lets go of Python's lock while it translates."""

    def __init__(self, path, **limits):
        self.library, self.plan, error = load(), Plan(), Error()
        self.model, self.translator = ctypes.c_void_p(), ctypes.c_void_p()
        if (self.library.dragoman_open(os.fsencode(path), 0, self.model, error)
                or self.library.dragoman_make_plan(self.model, Limits(**limits), self.plan, error)
                or self.library.dragoman_start(self.model, self.plan, None, None, self.translator, error)):
            self.close()
            raise RuntimeError(error.text.decode())
        self.out = ctypes.create_string_buffer(self.plan.output_bytes)

    def translate(self, text):
        source, result = text.encode(), Result()
        while True:
            self.library.dragoman_translate(self.translator, source, len(source), None, self.out, len(self.out), result)
            if not result.flags & TRUNCATED:
                return self.out.value.decode()
            self.out = ctypes.create_string_buffer(result.bytes + 1)  # a long text: now we know how much it takes

    def close(self):
        self.library.dragoman_stop(self.translator)
        self.library.dragoman_close(self.model)
        self.translator, self.model = ctypes.c_void_p(), ctypes.c_void_p()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__.splitlines()[0])
    try:
        with Translator(sys.argv[1], source=64) as translator:
            for line in sys.argv[2:]:
                print(translator.translate(line))
    except RuntimeError as problem:
        sys.exit(str(problem))
