#!/usr/bin/env python3
"""man_pages.py BUILD MAN: every option of --help is in the manual and the reverse, command by command, and groff has
nothing to complain about. BUILD holds the programs, MAN their manuals; a program that was not built is left out."""
import pathlib
import re
import subprocess
import sys

failures = []


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True)


def options(line):
    """{"-m", "--model"} of "-m, --model FILE   the model"; nothing for lines that do not begin with an option."""
    begin = re.match(r"-[^ ,]+(, ?-[^ ,]+)*", line)
    return set(re.findall(r"--?[a-z][a-z-]*", begin[0])) if begin else set()


def of_help(text):
    """An option begins a line, two spaces in: elsewhere it is an example or a continued sentence."""
    return set().union(*(options(line[2:]) for line in text.splitlines() if re.match(r"  -", line)))


def of_manual(page):
    """{section: options}, where an option is a tag: seven spaces in. Subsections count as sections."""
    printed = run("groff", "-man", "-ww", "-Tascii", "-rLL=300n", "-P-cbou", str(page))
    if printed.stderr:
        failures.append(f"{page}: groff says {printed.stderr.strip()}")
    sections, section = {}, None
    for line in printed.stdout.splitlines():
        if heading := re.match(r"(?: {3})?(\S.*)", line):
            section = sections.setdefault(heading[1], set())
        elif re.match(r" {7}-", line):
            section |= options(line[7:])
    return sections


def compare(name, helped, manual):
    if not helped:
        failures.append(f"{name}: no options found in its help")
    for option in sorted(helped - manual):
        failures.append(f"{name}: {option} is in --help and not in the manual")
    for option in sorted(manual - helped):
        failures.append(f"{name}: {option} is in the manual and not in --help")


def main(build, man):
    overview = run(build / "dragoman", "help").stdout
    commands = re.findall(r"^  ([a-z]+) {2,}", overview, re.MULTILINE)
    sections = of_manual(man / "dragoman.1")
    described = {heading[9:] for heading in sections if re.fullmatch("dragoman [a-z]+", heading)}
    if described != set(commands):
        failures.append(f"dragoman: the manual describes {sorted(described)}, the program has {sorted(commands)}")
    for command in commands:
        text = overview if command == "help" else run(build / "dragoman", "help", command).stdout
        compare(f"dragoman {command}", of_help(text), sections.get(f"dragoman {command}", set()))

    for name in "dragoman-convert", "dragoman-bench":
        sections = of_manual(man / f"{name}.1")
        if (build / name).exists():
            compare(name, of_help(run(build / name, "--help").stdout), sections.get("OPTIONS", set()))
        else:
            print(f"skipped: {name} was not built")
    print("\n".join(failures) or f"{len(commands)} commands and their manuals agree")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*map(pathlib.Path, sys.argv[1:])))
