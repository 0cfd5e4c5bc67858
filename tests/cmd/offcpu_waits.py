# SPDX-License-Identifier: BSD-2-Clause
"""Python threads that wait in known ways: threads, gil or asyncio, for SECONDS. Each says on stderr
"NAME PID TID WAITED_S WALL_S", by its own clock; of gil it is the CPU time in place of waiting."""
import asyncio
import ctypes
import os
import queue
import socket
import subprocess
import sys
import threading
import time

what, end = sys.argv[1], time.monotonic() + float(sys.argv[2])
lock, jobs = threading.Lock(), queue.Queue()
left, right = socket.socketpair()
said = []


def name_thread(name):
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)


def say(name, seconds, begin):
    said.append(f"{name} {os.getpid()} {threading.get_native_id()} {seconds:.6f} {time.monotonic() - begin:.6f}")


def timed(call, *args):
    begin = time.monotonic()
    call(*args)
    return time.monotonic() - begin


def take():
    with lock:
        pass


def child():
    return timed(subprocess.Popen(["/bin/sleep", "0.1"]).wait)


def waiter(name, wait):
    def run():
        name_thread(name)
        begin, waited = time.monotonic(), 0.0
        while time.monotonic() < end:
            waited += wait()
            read_tick()
        say(name, waited, begin)
    return threading.Thread(target=run)


# What no other thread does: so the rest of a thread's time is told apart.
def read_tick():
    os.read(ticks, 1)


def tick():
    name_thread("ticker")
    while time.monotonic() < end + 0.3:
        time.sleep(0.005)
        os.write(to_ticks, b"....")


def hold():
    name_thread("holder")
    while time.monotonic() < end + 0.2:
        with lock:
            time.sleep(0.02)
        time.sleep(0.001)


def feed():
    name_thread("feeder")
    while time.monotonic() < end + 0.3:
        time.sleep(0.02)
        jobs.put(1)
        right.send(b"x")


def spin(name):
    name_thread(name)
    begin = time.monotonic()
    while time.monotonic() < end:
        pass
    say(name, time.thread_time(), begin)


async def loop_for_a_while():
    name_thread("loop")
    loop = asyncio.get_running_loop()
    select, begin, waited = loop._selector.select, time.monotonic(), 0.0

    def timed_select(timeout):
        nonlocal waited
        start = time.monotonic()
        events = select(timeout)
        waited += time.monotonic() - start
        return events

    loop._selector.select = timed_select
    while time.monotonic() < end:
        await asyncio.sleep(0.01)
        until = time.thread_time() + 0.002
        while time.thread_time() < until:
            pass
    say("loop", waited, begin)


threads = []
if what == "threads":
    ticks, to_ticks = os.pipe()
    for run in tick, hold, feed:
        threading.Thread(target=run, daemon=True).start()
    threads = [waiter("sleep", lambda: timed(time.sleep, 0.02)), waiter("lock", lambda: timed(take)),
               waiter("queue", lambda: timed(jobs.get)), waiter("recv", lambda: timed(left.recv, 1)),
               waiter("child", child)]
elif what == "gil":
    threads = [threading.Thread(target=spin, args=(f"spin{i}",)) for i in range(3)]
else:
    asyncio.run(loop_for_a_while())
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("\n".join(said), file=sys.stderr)
