"""Ends its children again and again, while its threads begin and end."""

import subprocess
import threading
import time

import psutil

from supervisor.children.children import kill_everything

SECONDS = 3.0
CHURNS = 3


def main() -> None:
    is_over = threading.Event()

    def churn() -> None:
        while not is_over.is_set():
            thread = threading.Thread(target=is_over.is_set)
            thread.start()
            thread.join()

    churns = [threading.Thread(target=churn) for _ in range(CHURNS)]
    for one in churns:
        one.start()
    try:
        child = subprocess.Popen(["/bin/sleep", "600"])
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            kill_everything()
        child.returncode = 0
    finally:
        is_over.set()
    if not psutil.Process().children():
        print("no child is left")


if __name__ == "__main__":
    main()
