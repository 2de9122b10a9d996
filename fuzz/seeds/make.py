"""Writes a folder of small valid files per target beside it; those that take options begin with their
bytes. Made with Python 3.11, NumPy 2.4.6 and pyarrow 26.0.1: python make.py"""

import datetime
import decimal
import gzip
import io
import pathlib
import shutil
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq

here = pathlib.Path(__file__).resolve().parent
golden = here.parents[1] / "crates/covary/tests/golden"


def seed(target, name, content):
    folder = here / target
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)


for target in ["csv", "gzip", "npy", "npz", "parquet", "arrow", "xlsx", "ods", "model_file"]:
    shutil.rmtree(here / target, ignore_errors=True)

texts = {
    "plain": (b"\0\0", b"x,y\n1,2\n3,\n"),
    "quotes": (b"\0\0", b'id,x,"y"\r\n"a,b", 1.0 ,NA\r\n,,"2"\r\n"""",+3e0,null'),
    "labels": (b"\x10\0", b",site,x,y,note\n1,north,-99,NA,\n2,?,2,5,\"4,5\"\n"),
    "chosen": (b"\x06\0", b"\xef\xbb\xbfx,y,z\r1,a,-.5e-3\r\r2,b,nan\r"),
    "comma": (b"\0\x03", b"x;y\n1,5;2\n;0,25\n"),
    "tabs": (b"\0\x08", b"x\ty\n1\t2\n3\t\n"),
    "spaces": (b"\x10\x04", b"x y\n1 -99\n0 2\n"),
    "blanks": (b"\0\x20", b" x  y\n1 \t NA\n 0 2\n"),
    "european": (b"\0\x10", b"Title;;\nx;y;z\n1,5;2;\n;0,25;3\n"),
    "headerless": (b"\0\x10", b"1.5,2,a\n2.5,,a\n3,4,b\n"),
    "utf16": (b"\0\x10", "\ufeffx\ty\r\n1,5\t2\r\n2\t\r\n".encode("utf-16-le")),
    "latin": (b"\0\x10", "größe,x\né,1\n,2\n".encode("latin-1")),
    "turned": (b"\0\x90", b"gene,s1,s2\ng1,1,2\ng2,,3\n"),
}
for name, (options, text) in texts.items():
    seed("csv", name, options + text)
    seed("gzip", name, gzip.compress(text, mtime=0))
seed("gzip", "members", gzip.compress(b"x,y\n1,2\n", mtime=0) + gzip.compress(b"3,\n", mtime=0))

for file in sorted((golden / "npy").glob("*.np?")):
    seed(file.suffix[1:], file.stem, b"\0" + file.read_bytes())
arrays = [(golden / "npy" / name).read_bytes() for name in ["f8.npy", "text.npy", "i4.npy"]]
seed("npz", "parts", b"\x80" + b"".join(arrays))
seed("npz", "chosen", b"\xb4" + b"".join(arrays))

day = datetime.date(2020, 1, 2)
table = pa.table(
    {
        "id": ["a", None, "c"],
        "x": [1.5, None, -2.0],
        "n": pa.array([1, None, 3], pa.int32()),
        "u": pa.array([7, 8, 9], pa.uint8()),
        "f": pa.array([0.5, None, 2.5], pa.float32()),
        "price": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("3.50")], pa.decimal128(9, 2)),
        "flag": [True, False, None],
        "day": pa.array([day, None, day]),
        "at": pa.array([datetime.datetime(2020, 1, 2, 3, 4, 5)] * 3, pa.timestamp("us", "Europe/Paris")),
        "level": pa.array(["lo", "hi", "lo"]).dictionary_encode(),
        "list": [[1, 2], None, []],
        "record": [{"a": 1}, None, {"a": 2}],
    }
)
plain = table.select(["x", "n", "u", "f"])
tables = {"all": table, "numbers": plain, "text": table.select(["id", "x", "level"])}
for name, each in tables.items():
    for compression in ["NONE", "ZSTD", "SNAPPY"]:
        out = io.BytesIO()
        pq.write_table(each, out, compression=compression, row_group_size=2, data_page_version="2.0")
        seed("parquet", f"{name}_{compression.lower()}", b"\0" + out.getvalue())
    for kind, writer in [("file", pa.ipc.new_file), ("stream", pa.ipc.new_stream)]:
        for compression in [None, "lz4", "zstd"]:
            out = io.BytesIO()
            options = pa.ipc.IpcWriteOptions(compression=compression)
            with writer(out, each.schema, options=options) as sink:
                sink.write_table(each, max_chunksize=2)
            seed("arrow", f"{name}_{kind}_{compression}", b"\0" + out.getvalue())

main, office = "http://schemas.openxmlformats.org/", "urn:oasis:names:tc:opendocument:xmlns"
workbook = {
    "_rels/.rels": f'<Relationships><Relationship Id="rId1" Type="{main}officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{main}spreadsheetml/2006/main" xmlns:r="{main}officeDocument/2006/relationships"><sheets><sheet name="A" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships><Relationship Id="rId1" Type="{main}officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
    "xl/sharedStrings.xml": "<sst><si><t>x</t></si><si><t>y</t></si></sst>",
    "xl/styles.xml": '<styleSheet><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>',
    "xl/worksheets/sheet1.xml": '<worksheet><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c></row><row r="2"><c r="A2"><v>1.5</v></c><c r="B2" s="1"><v>45000</v></c></row><row r="3"><c r="A3" t="e"><v>#N/A</v></c><c r="B3" t="inlineStr"><is><t>2</t></is></c></row></sheetData></worksheet>',
}
document = {
    "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
    "META-INF/manifest.xml": "<manifest:manifest/>",
    "content.xml": f'<office:document-content xmlns:office="{office}:office:1.0" xmlns:table="{office}:table:1.0" xmlns:text="{office}:text:1.0"><office:body><office:spreadsheet><table:table table:name="A"><table:table-row><table:table-cell office:value-type="string"><text:p>x</text:p></table:table-cell><table:table-cell office:value-type="string" table:number-columns-repeated="1"><text:p>y</text:p></table:table-cell></table:table-row><table:table-row table:number-rows-repeated="3"><table:table-cell office:value-type="float" office:value="1.5"/><table:table-cell office:value-type="date" office:date-value="2024-01-02"/></table:table-row></table:table></office:spreadsheet></office:body></office:document-content>',
}
for kind, parts in [("xlsx", workbook), ("ods", document)]:
    seed(kind, "parts", b"".join(f"{name}\0{text}\0".encode() for name, text in parts.items()))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    seed(kind, "whole", out.getvalue())

for file in (golden / "model_files").glob("*.covary"):
    seed("model_file", file.stem, file.read_bytes())
