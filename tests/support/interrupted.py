#!/usr/bin/env python3
"""Runs a command and interrupts it.

  interrupted.py kill SEED N -- COMMAND   SIGKILL at N random moments, each time begun again with
                                          --resume; then once more to its end
  interrupted.py twice -- COMMAND         SIGINT when it has printed its first line, and again at
                                          once; prints the exit status
"""
import os
import random
import signal
import subprocess
import sys
import time


def kill_at_random(draw, times, longest, state, command):
    """How often the run was killed before it was done, and how often it went on from a state."""
    resumed = 0
    for killed in range(times):
        again = ["--resume"] if os.path.exists(state) else []
        resumed += len(again)
        process = subprocess.Popen(command + again, stdout=subprocess.DEVNULL)
        try:
            process.wait(draw.uniform(0, longest))
            return killed, resumed
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
    return times, resumed


def kill(seed, times, state, checkpoint, command):
    # A quick machine is done before it has been killed often: then all begins anew, with less time
    # between the kills.
    draw, longest = random.Random(seed), 0.3
    while True:
        killed, resumed = kill_at_random(draw, times, longest, state, command)
        if killed >= times // 2 and resumed:
            break
        if killed < times // 2:
            longest *= 0.7
        else:
            longest *= 1.6  # a slow machine has not come to its first state
        for path in (state, checkpoint):
            if os.path.exists(path):
                os.remove(path)
    again = ["--resume"] if os.path.exists(state) else []
    status = subprocess.call(command + again, stdout=subprocess.DEVNULL)
    print("killed often enough")
    return status


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
    checkpoint = command[command.index("--checkpoint") + 1]
    sys.exit(kill(int(sys.argv[2]), int(sys.argv[3]), checkpoint.replace(".psk.d", ".state.psk.d"),
                  checkpoint, command))
sys.exit(twice(command))
