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


def kill(seed, times, state, command):
    draw = random.Random(seed)
    killed = 0
    while killed < times:
        again = ["--resume"] if os.path.exists(state) else []
        process = subprocess.Popen(command + again, stdout=subprocess.DEVNULL)
        try:
            process.wait(draw.uniform(0.01, 0.3))
            break  # it was done before the moment came
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
    again = ["--resume"] if os.path.exists(state) else []
    status = subprocess.call(command + again, stdout=subprocess.DEVNULL)
    print("killed often enough" if killed >= times // 2 else f"killed {killed} times only")
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
                  command))
sys.exit(twice(command))
