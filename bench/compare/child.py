"""Runs one command, waits for it and prints what it used. Not for people: measure.py starts it.

  python3 -I -S child.py CPUS IN OUT ERR COMMAND...

A process of its own because Linux counts what the parent had resident when it forked as the peak of the child (exec
keeps the maximum). This one imports little and has about 10 MB, less than any model; `floor` says how much.
"""
import os
import sys
import time


def main():
    (cpus, source, out, err), command = sys.argv[1:5], sys.argv[5:]
    os.sched_setaffinity(0, [int(cpu) for cpu in cpus.split(",")])
    files = os.open(source, os.O_RDONLY), create(out), create(err)
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        for target, file in enumerate(files):
            os.dup2(file, target)
        try:
            os.execvp(command[0], command)
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(127)
    _, status, used = os.wait4(child, 0)
    wall = time.monotonic() - started
    with open("/proc/self/status") as status_file:
        floor = next(int(line.split()[1]) for line in status_file if line.startswith("VmHWM"))
    print(os.waitstatus_to_exitcode(status), wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, floor * 1024)


def create(path):
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)


main()
