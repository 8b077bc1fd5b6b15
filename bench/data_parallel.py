"""DataParallel on four virtual devices: a forward pass with kept replicas beside one that copies everything again.

python bench/data_parallel.py prints the medians of both, taken in turn in one run. Inference: nothing changes between calls, so kept
replicas copy nothing. Training: the optimizer changes every parameter, so both copy all.
"""
import statistics
import time

import naru as torch
from naru import nn
from naru.nn.parallel.replicate import Copies


def network(width):
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))


def main():
    torch.virtual("cuda", count=4)
    print(f"naru {torch.__version__}, {torch.get_num_threads()} threads, 4 virtual devices; medians of 60 calls in ms")
    for width, batch in ((256, 64), (1024, 64), (2048, 64)):
        model = nn.DataParallel(network(width).to("cuda"))
        x = torch.randn(batch, width, device="cuda")
        times = {"kept": [], "copied again": []}

        def call(name):
            if name == "copied again":
                model._copies = Copies()
            start = time.perf_counter()
            with torch.no_grad():
                model(x).sum().item()
            times[name].append(time.perf_counter() - start)

        for _ in range(63):
            for name in times:
                call(name)
                if name == "copied again":
                    with torch.no_grad():
                        model(x).sum().item()  # kept from here
        kept, again = (statistics.median(t[3:]) * 1e3 for t in times.values())
        megabytes = sum(p.numel() * 4 for p in model.parameters()) / 2**20
        print(f"{megabytes:6.1f} MiB of parameters, batch {batch}: kept {kept:.2f}, copied again {again:.2f}: {again / kept:.2f} x")


if __name__ == "__main__":
    main()
