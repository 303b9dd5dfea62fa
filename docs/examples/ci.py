#!/usr/bin/env python3
"""Runs the jobs of a CI pipeline side by side, each in a sandbox of its own, behind one proxy.

    ci.py SETTINGS JOBS

SETTINGS is a settings file of srt. JOBS is a JSON list:

    [{"name": "build", "dir": "/ci/42", "allow": ["registry.npmjs.org"], "command": ["npm", "ci"]}]

The exit status is 1 if a job has failed. srt-proxy and srt-launch are looked for in the folder that SRT_BIN names, or
on PATH.
"""

import json
import os
import socket
import subprocess
import sys


def program(name):
    folder = os.environ.get("SRT_BIN")
    # Jobs have working directories of their own.
    return os.path.abspath(os.path.join(folder, name)) if folder else name


class Proxy:
    """One srt-proxy. It ends when this process does, however that happens."""

    def __init__(self, settings):
        self.attach, attach = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        lifeline, self.lifeline = os.pipe()
        with attach, open(settings, "rb") as file:
            fds = {"--attach-fd": attach.fileno(), "--settings-fd": file.fileno(), "--lifeline-fd": lifeline}
            arguments = [word for flag, fd in fds.items() for word in (flag, str(fd))]
            self.process = subprocess.Popen(
                [program("srt-proxy"), *arguments], pass_fds=fds.values(), stdin=subprocess.DEVNULL
            )
        os.close(lifeline)

    def launch(self, job, settings):
        """Starts one job. It reaches the hosts of the settings and its own, and no other job's."""
        allow = [word for host in job.get("allow", []) for word in ("--allow", host)]
        fd = self.attach.fileno()
        return subprocess.Popen(
            [program("srt-launch"), "--settings", settings, "--proxy-fd", str(fd), "--name", job["name"], *allow]
            + ["--", *job["command"]],
            cwd=job.get("dir"),
            pass_fds=[fd],
            stdin=subprocess.DEVNULL,
        )

    def stop(self):
        os.close(self.lifeline)
        self.attach.close()
        return self.process.wait()


def main(settings, jobs):
    settings = os.path.abspath(settings)
    with open(jobs, encoding="utf-8") as file:
        jobs = json.load(file)
    proxy = Proxy(settings)
    # A proxy that could not start closes the attach socket, and every launcher says so and ends with 125.
    running = [(job["name"], proxy.launch(job, settings)) for job in jobs]
    statuses = [(name, process.wait()) for name, process in running]
    failed = proxy.stop() != 0
    for name, status in statuses:
        print(f"{name}: {'passed' if status == 0 else f'failed with {status}'}")
        failed |= status != 0
    return int(failed)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
