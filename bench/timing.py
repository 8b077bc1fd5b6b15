"""Timing: the median over repetitions, each of as many calls as fill the target time."""
import statistics
import time


def median_seconds(call, target=0.02, repetitions=9, warm=3, limit=6.0, clock=time.perf_counter):
    """Median seconds of one call. A repetition is a loop of about `target` seconds; stops early after `limit` seconds in all."""
    for _ in range(warm):
        call()
    start = clock()
    call()
    once = max(clock() - start, 1e-9)
    loops = max(1, int(target / once))
    times, begun = [], clock()
    for _ in range(repetitions):
        start = clock()
        for _ in range(loops):
            call()
        times.append((clock() - start) / loops)
        if clock() - begun > limit and len(times) >= 3:
            break
    return statistics.median(times)
