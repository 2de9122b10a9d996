"""Reading a table beside pandas, polars and pyarrow, on equal threads.

    python bench/read.py [--rows 100000] [--columns 100] [--rounds 7] [--reads 1] [--only parquet]

Needs numpy, pandas, polars and pyarrow. Every reader has a process of its own and reads a file that the system has
in memory. Readers take turns, round after round, so that a busy moment of the machine falls on all of them; the
minimum counts, of wall and of processor time, and `spread` is the median over the minimum: where it is far from 1
the machine was busy and the ratios of wall time mean little. Covary gives rows of f64 with their gaps grouped, the
others give columns. A process reads its file once, as commands and scripts do; with --reads 5 the best of five counts,
and libraries that keep memory from one read to the next need not ask the system for it again. Prints Markdown; a ratio is ours / theirs.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = {
    "csv": {
        "pandas": "import pandas; read = lambda: pandas.read_csv(file, engine='c')",
        "polars": "import polars; read = lambda: polars.read_csv(file)",
    },
    "parquet": {
        "pyarrow": "import pyarrow, pyarrow.parquet as p; pyarrow.set_cpu_count(threads); "
        "read = lambda: p.read_table(file, use_threads=threads > 1)",
        "polars": "import polars; read = lambda: polars.read_parquet(file)",
    },
    "arrow": {
        "pyarrow": "import pyarrow, pyarrow.feather as f; pyarrow.set_cpu_count(threads); "
        "read = lambda: f.read_table(file, memory_map=False, use_threads=threads > 1)",
    },
}
TIMER = """
import sys, time
file, threads, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
large, file = file, sys.argv[4]
{setup}
read()  # a small file first: what a library loads on its first call is not reading
file = large
wall = cpu = float('inf')
for _ in range(repeats):
    start = time.perf_counter(), time.process_time()
    table = read()
    wall, cpu = min(wall, time.perf_counter() - start[0]), min(cpu, time.process_time() - start[1])
    del table
print('{{"wall": %r, "cpu": %r}}' % (wall, cpu))
"""


def environment(threads):
    names = ("OMP_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "ARROW_NUM_THREADS")
    return dict(os.environ, **{name: str(threads) for name in names})


def tables(folder, rows, columns):
    """Normal numbers: complete, with 5 % gaps, and those rounded to two decimals as measurements are."""
    import numpy
    import pandas

    random = numpy.random.default_rng(0)
    values = random.normal(size=(rows, columns))
    gaps = numpy.where(random.random(values.shape) < 0.05, numpy.nan, values)
    names = [f"x{j}" for j in range(1, columns + 1)]
    for word, table in {"complete": values, "gaps": gaps, "rounded": gaps.round(2)}.items():
        frame = pandas.DataFrame(table, columns=names)
        for place, rows in ((folder, frame), (folder / "small", frame[:10])):
            place.mkdir(exist_ok=True)
            rows.to_csv(place / f"{word}.csv", index=False)
            rows.to_parquet(place / f"{word}.parquet", index=False)
            rows.to_feather(place / f"{word}.arrow")
    return sorted(file for file in folder.iterdir() if file.is_file())


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rows", type=int, default=100_000)
    arguments.add_argument("--columns", type=int, default=100)
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--reads", type=int, default=1)
    arguments.add_argument("--only", help="only files whose name holds this")
    chosen = arguments.parse_args()
    build = ["cargo", "build", "--release", "-p", "covary", "--all-features", "--example", "read_time"]
    subprocess.run(build, cwd=ROOT, check=True)
    example = ROOT / "target/release/examples/read_time"
    print(f"{chosen.rows} x {chosen.columns}, minimum of {chosen.rounds} rounds, {chosen.reads} read(s) in each\n")
    print("| file | threads | reader | wall s | spread | cpu s | ours / theirs, wall | cpu | peak / numbers |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for file in tables(pathlib.Path(folder), chosen.rows, chosen.columns):
            if chosen.only and chosen.only not in file.name:
                continue
            for threads in (1, 2):
                report(file, threads, chosen, example, 8 * chosen.rows * chosen.columns)


def report(file, threads, chosen, example, size):
    small = file.parent / "small" / file.name
    commands = {"covary": [example, file, str(chosen.reads)]}
    for peer, setup in PEERS[file.suffix[1:]].items():
        commands[peer] = [sys.executable, "-c", TIMER.format(setup=setup), file, str(threads), str(chosen.reads), small]
    runs = {reader: [] for reader in commands}
    for _ in range(chosen.rounds):
        for reader, command in commands.items():
            result = subprocess.run(command, env=environment(threads), check=True, capture_output=True)
            runs[reader].append(json.loads(result.stdout))
    best = {reader: {key: min(r[key] for r in of) for key in ("wall", "cpu")} for reader, of in runs.items()}
    for reader, of in runs.items():
        spread = statistics.median(r["wall"] for r in of) / best[reader]["wall"]
        wall, cpu = (best["covary"][key] / best[reader][key] for key in ("wall", "cpu"))
        ratios = f"{wall:.2f} | {cpu:.2f} |" if reader != "covary" else f"| | {of[0]['peak'] / size:.2f}"
        ratios += " |" if reader == "covary" else "  |"
        print(
            f"| {file.name} | {threads} | {reader} | {best[reader]['wall']:.3f} | {spread:.2f} "
            f"| {best[reader]['cpu']:.3f} | {ratios}",
            flush=True,
        )


if __name__ == "__main__":
    main()
