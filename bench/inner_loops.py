#!/usr/bin/env python3
"""What a multiply-accumulate costs in each table, without the CPU it is for: the inner loops of gemm_f32 and gemm_s8.

  bench/inner_loops.py BUILD [--objdump OBJDUMP] [--mca LLVM-MCA] [--measure]

BUILD is a build folder (build/release). Instructions are counted in the disassembled loop of the largest register tile
and of the one for a single row; llvm-mca, where it is installed, says how many products a cycle its model of a CPU
makes of that loop, all loads hitting L1. --measure sets the rate of dragoman-bench-kernels (k = 512, n = 2048; 32 rows
and 1) beside the tables that run here.
"""
import argparse
import json
import pathlib
import re
import subprocess

# Which CPUs to ask llvm-mca about, per table.
CPUS = {
    "sse41": ["nehalem"], "avx2": ["haswell", "znver3"], "avx512": ["skylake-avx512"], "avx512vnni": ["icelake-server"],
    "neon": ["cortex-a72"], "neondot": ["cortex-a76"], "neoni8mm": ["neoverse-n2"],
}
# Products in one instruction: a pattern of mnemonic and operands, and how many. mulpd and pmullw are emulations.
PRODUCTS = {
    "f32": [(r"vfmadd\d+ps.*%zmm", 16), (r"vfmadd\d+ps.*%ymm", 8), (r"mulpd .*%xmm", 2),
            (r"fmla\s+v.*\.4s", 4), (r"vfma\.f32\s+q", 4)],
    "s8": [(r"vpdpbusd .*%zmm", 64), (r"vpmaddubsw.*%zmm", 64), (r"vpmaddubsw.*%ymm", 32), (r"pmaddubsw.*%xmm", 16),
           (r"pmullw.*%xmm", 8), (r"sdot\s+v.*\.4s", 16), (r"smmla\s", 32), (r"sml?[ua]ll?2?\s+v.*\.8h", 8), (r"ml?[ua]l?\s+v.*\.8h", 8), (r"v(mull|mlal)\.s8\s+q", 8)],
}
ENDS_A_LOOP = re.compile(r"^(j[a-z]+|b|b\.[a-z]+|b[a-z]{2}(\.n)?|cbn?z|tbn?z)\s")


def functions(archive, objdump):
    """(table, kernel, rows, panels, [(address, instruction)]) of every tile in the archive."""
    listing = subprocess.run([objdump, "-dC", "--no-show-raw-insn", archive], capture_output=True, text=True, check=True)
    name, found = None, []
    for line in listing.stdout.splitlines():
        if started := re.match(r"isa_(\w+)\.", line):
            table = started[1]
        elif line.endswith(">:"):
            name = re.search(r"tile_(f32|s8)<[^,>]+, (\d+)u?l?, (\d+)u?l?[,>]", line)
            if name and ("Along" in line) != (name[2] == "1"):
                name = None  # one row asks along its panels, the largest tile ahead; of both there are others too
            if name:
                found.append((table, name[1], int(name[2]), int(name[3]), []))
        elif name and (row := re.match(r"\s*([0-9a-f]+):\t(.*)", line)):
            found[-1][4].append((int(row[1], 16), re.sub(r"\s+(#|//) .*|\s*<.*", "", row[2]).strip()))
    return found


def products(kernel, body):
    return sum(next((count for pattern, count in PRODUCTS[kernel] if re.match(pattern, text)), 0) for _, text in body)


def inner_loop(kernel, code):
    """The innermost loop with the most products."""
    best = []
    for end, (address, text) in enumerate(code):
        target = re.search(r"\b([0-9a-f]+)$", text)
        if not ENDS_A_LOOP.match(text) or not target or int(target[1], 16) > address:
            continue
        body = [step for step in code[:end + 1] if step[0] >= int(target[1], 16)]
        if products(kernel, body) > products(kernel, best) or (best and len(body) < len(best) and best[-1] in body):
            best = body
    return best


def per_cycle(mca, cpu, kernel, body):
    """Products per cycle by llvm-mca's model, or None where it does not know the CPU or is not there."""
    text = "\n".join(text for _, text in body if not ENDS_A_LOOP.match(text))
    triple = "x86_64" if any("%" in text for _, text in body) else "aarch64"
    command = [mca, f"-mtriple={triple}-linux-gnu", f"-mcpu={cpu}", "-iterations=100", "-resource-pressure=false",
               "-instruction-info=false"]
    try:
        ran = subprocess.run(command, input=text, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    cycles = re.search(r"Total Cycles: +(\d+)", ran.stdout)
    return 100 * products(kernel, body) / int(cycles[1]) if cycles else None


def measure(build):
    """{(kernel, table, rows): products per second} of the tables that run here."""
    ran = subprocess.run([build / "dragoman-bench-kernels", "--benchmark_filter=k:512/n:2048/m:(1|32)$",
                          "--benchmark_format=json"], capture_output=True, text=True, check=True)
    rates = {}
    for entry in json.loads(ran.stdout)["benchmarks"]:
        kernel, table, *_, rows = entry["name"].split("/")
        rates[kernel[5:], table, int(rows[2:])] = entry["MAC/s"]
    return rates


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--objdump", default="objdump")
    parser.add_argument("--mca", default="llvm-mca-14")
    parser.add_argument("--measure", action="store_true")
    options = parser.parse_args()
    tiles = functions(options.build / "runtime" / "libdragoman.a", options.objdump)
    rates = measure(options.build) if options.measure else {}
    print("| kernel | table | tile (rows x columns) | instructions / products | per 64 products | products a cycle (llvm-mca) "
          "| measured |\n| --- | --- | --- | --- | --- | --- | --- |")
    for kernel in ("f32", "s8"):
        for table in dict.fromkeys(tile[0] for tile in tiles):
            mine = [tile for tile in tiles if tile[:2] == (table, kernel)]
            largest = max(mine, key=lambda tile: (tile[2] * tile[3], tile[2]))
            single = max((tile for tile in mine if tile[2] == 1), key=lambda tile: tile[3])
            for (_, _, rows, panels, code), m in ((largest, 32), (single, 1)):
                body = inner_loop(kernel, code)
                count = products(kernel, body)
                if count == 0:
                    continue  # scalar code: the portable table where the compiler has no vectors
                cycles = [(cpu, per_cycle(options.mca, cpu, kernel, body)) for cpu in CPUS.get(table, [])]
                modelled = ", ".join(f"{cpu} {rate:.1f}" for cpu, rate in cycles if rate)
                rate = rates.get((kernel, table, m))
                print(f"| gemm_{kernel} | {table} | {rows} x {16 * panels} | {len(body)} / {count} | "
                      f"{64 * len(body) / count:.1f} | {modelled} | {f'{rate / 1e9:.1f} G/s' if rate else ''} |")


main()
