"""Writes the arrays beside it. Made with Python 3.11 and NumPy 2.4.6: python make.py"""

import os
import numpy as np

os.chdir(os.path.dirname(os.path.abspath(__file__)))
nan = np.nan
x = np.array([[1.5, nan, -3.0], [0.0, 2.25, nan], [7.0, -8.5, 1e-3], [4.0, 5.0, 6.0]])

np.save("f8.npy", x)
np.save("f8_fortran.npy", np.asfortranarray(x))
np.save("f8_big_endian.npy", x.astype(">f8"))
np.save("f4.npy", x.astype("f4"))
np.save("f4_fortran_big_endian.npy", np.asfortranarray(x.astype(">f4")))
np.save("f2.npy", x.astype("f2"))
np.save("flat.npy", x[:, 1])
np.save("i4.npy", np.arange(-6, 6, dtype="i4").reshape(4, 3))
np.save("u1.npy", np.arange(12, dtype="u1").reshape(4, 3))
np.save("bool.npy", np.array([[True, False], [False, True], [True, True]]))
np.save("i8_wide.npy", np.array([[1, 2**53 + 1], [2, -(2**63)], [3, 5]]))
with open("version_2.npy", "wb") as f:
    np.lib.format.write_array(f, x, version=(2, 0))

np.save("objects.npy", np.array([[1, "a"], [2, "b"]], dtype=object))
np.save("complex.npy", x + 1j)
np.save("text.npy", np.array([["1", "2"], ["3", "4"]]))
np.save("dates.npy", np.array(["2020-01-01"], dtype="M8[D]"))
np.save("fields.npy", np.array([(1.0, 2)], dtype=[("shape", "f8"), ("descr", "i4")]))
np.save("extended.npy", x.astype(np.longdouble))
np.save("no_dimension.npy", np.array(3.0))
np.save("three_dimensions.npy", np.zeros((2, 3, 4)))
np.save("no_rows.npy", np.zeros((0, 3)))
np.save("infinite.npy", np.array([[1.0, 2.0], [3.0, -np.inf]]))
with open("two_arrays.npy", "wb") as f:
    np.save(f, x)
    np.save(f, x)

np.savez("one.npz", x)
np.savez("several.npz", a=x, b=x[:2], c=x[0], words=np.array(["u", "v"]))
np.savez_compressed(
    "named.npz",
    ids=np.arange(4),
    air=np.asfortranarray(x),
    columns=np.array(["Größe", "wind speed", "°C"]),
    fold=np.array(["a", "b", "a", "b"], dtype=object),
)
np.savez("no_table.npz", a=x[0], b=np.zeros((2, 2, 2)))
np.savez("none.npz")
