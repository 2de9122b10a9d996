"""Writes the tables beside it. Made with Python 3.11 and Polars 2.1.0: python make.py"""

import os
import polars as pl

os.chdir(os.path.dirname(os.path.abspath(__file__)))

numbers = pl.DataFrame({"a": [1.0, 2.0, 3.0, None], "b": [1.0, 2.0, 4.0, 5.0]})
for codec in ["uncompressed", "lz4", "zstd"]:
    numbers.write_ipc(f"polars_{codec}.arrow", compression=codec)

mixed = pl.DataFrame(
    {
        "site": ["north", "a long text that is not inlined", None, "", "south"],
        "x": [1.5, None, float("nan"), -0.0, 1e300],
        "n": [1, None, 3, 2**53 + 1, -5],
        "level": pl.Series(["low", "high", None, "low", "mid"], dtype=pl.Enum(["low", "mid", "high"])),
        "word": pl.Series(["p", None, "q", "p", "r"], dtype=pl.Categorical),
        "yes": [True, None, False, True, False],
    }
)
for codec in ["uncompressed", "lz4", "zstd"]:
    # Three batches.
    mixed.write_ipc(f"polars_mixed_{codec}.arrow", compression=codec, record_batch_size=2)
# Compressed in truth: buffers that would not shrink are stored as they are.
long = pl.DataFrame({"x": [float(i % 7) for i in range(1000)], "y": [None if i % 5 == 3 else i for i in range(1000)]})
for codec in ["lz4", "zstd"]:
    long.write_ipc(f"polars_long_{codec}.arrow", compression=codec, record_batch_size=600)
