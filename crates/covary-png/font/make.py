"""Makes the shipped fonts and the table of widths from DejaVu Sans (Debian fonts-dejavu-core).

    pip install fonttools && python3 make.py /usr/share/fonts/truetype/dejavu

Kept are the letters of Latin, Greek, Cyrillic, Hebrew and Arabic, punctuation, arrows and the signs of
mathematics that figures use; hinting is dropped. The widths go to ../../covary-report/src/widths.rs.
"""

import subprocess
import sys
from fontTools.ttLib import TTFont

LETTERS = ["U+0020-017F", "U+0300-0304", "U+0306-0308", "U+0386-03CE", "U+0400-045F", "U+2010-203A"]
SIGNS = ["U+2070-208E", "U+20AC", "U+2190-2193", "U+2200-2265", "U+25A0-25A1", "U+25CB-25CF", "U+FFFD"]
RIGHT_TO_LEFT = ["U+05D0-05EA", "U+060C-0652", "U+0660-0669", "U+066A-066D", "U+0671", "U+067E", "U+0686", "U+0698", "U+06A9", "U+06AF", "U+06CC"]
# Runs whose widths are tabulated; all else is guessed by its script.
TABLE = [(0x20, 0x7E), (0xA0, 0x17F), (0x386, 0x3CE), (0x400, 0x45F), (0x2010, 0x203A), (0x2070, 0x208E), (0x2190, 0x2193), (0x2200, 0x2265)]

folder = sys.argv[1]
lines = ["//! Widths of letters in thousandths of the size, by `font/make.py` from the shipped fonts.", ""]
for weight, name in [("", "REGULAR"), ("-Bold", "BOLD")]:
    out = f"DejaVuSans{weight}.ttf"
    subprocess.run(
        ["pyftsubset", f"{folder}/{out}", f"--output-file={out}", "--unicodes=" + ",".join(LETTERS + SIGNS + RIGHT_TO_LEFT),
         "--no-hinting", "--desubroutinize", "--layout-features=kern,liga,mark,mkmk,init,medi,fina,isol,rlig,ccmp,locl",
         "--name-IDs=*", "--notdef-outline"],
        check=True,
    )
    font = TTFont(out)
    cmap, widths, unit = font.getBestCmap(), font["hmtx"], font["head"].unitsPerEm
    lines += [f"/// Runs of code points, {name.lower()} weight.", f"pub(crate) const {name}: &[(u32, &[u16])] = &["]
    for first, last in TABLE:
        run = [round(1000 * widths[cmap[c]][0] / unit) if c in cmap else 600 for c in range(first, last + 1)]
        lines.append(f"    (0x{first:04x}, &{run}),")
    lines += ["];", ""]
with open("../../covary-report/src/widths.rs", "w") as file:
    file.write("\n".join(lines))
