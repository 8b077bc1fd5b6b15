"""Timing: the median over repetitions, each of as many calls as fill the target time."""
import statistics
import time


def median_seconds(call, target=0.02, repetitions=9, warm=3, limit=6.0):
    """Median seconds of one call. A repetition is a loop of about `target` seconds; stops early after `limit` seconds in all."""
    for _ in range(warm):
        call()
    start = time.perf_counter()
    call()
    once = max(time.perf_counter() - start, 1e-9)
    loops = max(1, int(target / once))
    times, begun = [], time.perf_counter()
    for _ in range(repetitions):
        start = time.perf_counter()
        for _ in range(loops):
            call()
        times.append((time.perf_counter() - start) / loops)
        if time.perf_counter() - begun > limit and len(times) >= 3:
            break
    return statistics.median(times)
