#!/usr/bin/env python3
"""Runs a command and interrupts it.

  interrupted.py kill SEED N WHOLE -- COMMAND   trains until SIGKILL has come at N random moments,
                                                each time begun again with --resume; whenever a
                                                training is done, its files must be those of the
                                                checkpoint WHOLE, and the next one begins from nothing
  interrupted.py twice -- COMMAND               SIGINT when it has printed its first line, and again
                                                at once; prints the exit status
"""
import os
import pathlib
import random
import signal
import subprocess
import sys
import time


def files_of(checkpoint):
    return [pathlib.Path(checkpoint), pathlib.Path(checkpoint.replace(".psk.d", ".state.psk.d"))]


class Killer:
    def __init__(self, seed, times, whole, command):
        self.draw, self.left, self.command = random.Random(seed), times, command
        self.wanted = [file.read_bytes() for file in files_of(whole)]
        self.files = files_of(command[command.index("--checkpoint") + 1])
        self.longest = 0.3  # seconds from the start to the signal
        self.resumed = 0

    def run_once(self):
        """Is the training done? While kills are left, one may end it before."""
        again = ["--resume"] if self.files[1].exists() else []
        self.resumed += len(again)
        process = subprocess.Popen(self.command + again, stdout=subprocess.DEVNULL)
        try:
            status = process.wait(self.draw.uniform(0, self.longest) if self.left else None)
            if status:
                sys.exit(f"exit status {status} after {again or 'the start'}")
            return True
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.left -= 1
            return False

    def train(self):
        """One training from nothing to its end."""
        for file in self.files:
            file.unlink(missing_ok=True)
        before, runs = self.resumed, 1
        while not self.run_once():
            runs += 1
            if runs % 8 == 0 and not self.files[1].exists():
                self.longest *= 1.6  # a slow machine has not come to its first state
        if self.resumed - before < 4:
            self.longest *= 0.7  # a quick one was done before it was killed often
        if [file.read_bytes() for file in self.files] != self.wanted:
            sys.exit(f"other bits after {runs} runs")


def kill(seed, times, whole, command):
    killer, trainings = Killer(seed, times, whole, command), 0
    while killer.left:
        killer.train()
        trainings += 1
    print(f"seed {seed}: killed {times} times, resumed {killer.resumed} times, {trainings} trainings "
          "done, all with the same bits")
    return 0 if killer.resumed > times // 4 else 1


def twice(command):
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    process.stdout.readline()
    time.sleep(0.3)  # the head is printed before signals are watched
    process.send_signal(signal.SIGINT)
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.stdout.read()
    print(f"exit status {process.wait()}")
    return 0


command = sys.argv[sys.argv.index("--") + 1:]
if sys.argv[1] == "kill":
    sys.exit(kill(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], command))
sys.exit(twice(command))
