"""Figures of a running process."""

import os
import pathlib

TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    """The processor time that it has used, in ticks of 10 ms."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def memory_mib(pid):
    """The memory that it occupies."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) >> 10
