"""What a pass costs on each engine, with its sums and without them: processor time of all processes.

    target/cluster/bin/python -P bench/cluster.py dask|ray|spark|local [rows]

The environment is that of `cargo xtask cluster` (`-P`, Python 3.11 or later: Dask would take `bench/sparse.py` for the package of that name). The table has 50 columns, a tenth of its cells missing; 5 components. A pass of
the E-step is made five times, then seven times by workers that get and check all rows but sum nothing; the least processor time of
each is printed. Workers are warm: passes have been made before.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

import covary
from covary import _rows
from covary.cluster import _engine

D = 50


def processor() -> float:
    """Seconds of this process and all below it."""
    ours = psutil.Process()
    total = 0.0
    for process in [ours, *ours.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def files(n: int, folder: Path) -> Path:
    """The table in files of 100 000 rows."""
    import pandas as pd

    rng = np.random.default_rng(0)
    loadings = rng.normal(size=(5, D))
    names = [f"c{j}" for j in range(D)]
    for k, start in enumerate(range(0, n, 100_000)):
        size = min(100_000, n - start)
        x = rng.normal(size=(size, 5)) @ loadings + rng.normal(size=(size, D))
        x[rng.random(x.shape) < 0.1] = np.nan
        pd.DataFrame(x, columns=names).to_parquet(folder / f"part-{k:04}.parquet")
    return folder


def opened(engine: str, folder: Path):
    if engine == "dask":
        import dask.dataframe as dd
        from distributed import Client

        Client(n_workers=2, threads_per_worker=1, dashboard_address=None)
        return dd.read_parquet(folder)
    if engine == "ray":
        import ray

        ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
        ray.data.DataContext.get_current().enable_progress_bars = False
        return ray.data.read_parquet(str(folder))
    if engine == "spark":
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.driver.memory", "4g")
            .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .getOrCreate()
        )
        return spark.read.parquet(str(folder))
    return str(folder)


def nothing(state: bytes):
    """Workers that get and check all rows and sum nothing; sent to them by value."""
    unchanged = _rows.unchanged

    def states(task, blocks):
        found = [unchanged(block) for block in blocks]
        return state[:100] if found else None

    def merged(found):
        return found[0]

    return states, merged


def main() -> None:
    engine, n = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = files(n, Path(name))
        source = opened(engine, folder)
        before, clock = processor(), time.perf_counter()
        rows = _engine(source).table(source, None)
        ready, tasks, reduce = processor() - before, [], rows.reduce
        clock = time.perf_counter() - clock

        def noted(task: bytes) -> bytes:
            tasks.append(task)
            return reduce(task)

        rows.reduce = noted
        covary.PPCA(5, max_iter=3)._fit_rows(rows)
        task, sums, empty = tasks[-1], [], []
        for _ in range(5):
            before = processor()
            reduce(task)
            sums.append(processor() - before)
        state = reduce(task)
        _rows.states, _rows.merged = nothing(state)
        for _ in range(7):
            before, wall = processor(), time.perf_counter()
            reduce(task)
            empty.append((processor() - before, time.perf_counter() - wall))
        rows.close()
    gb = n * D * 8 / 1e9
    print(f"{engine}: {n} rows, {gb:.2f} GB, {rows.n_blocks} blocks, load {os.getloadavg()[0]:.1f}")
    print(f"  made ready: {ready:.2f} cpu-s ({clock:.1f} s)")
    print(f"  a pass: {min(sums):.2f} cpu-s; without the sums {min(empty)[0]:.2f} cpu-s ({min(e[1] for e in empty):.2f} s)")


if __name__ == "__main__":
    main()
