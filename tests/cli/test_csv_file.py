"""A CSV file of another form is refused by a line that says which form it has, and quotes no cell."""

import bz2
import gzip
import lzma

import pytest

from ppdp.cli.main import main

ROWS = b"age,city\n31337,Cork\n41,Bergen\n"
FORMS = {
    "index": (b",age,city\n0,31337,Cork\n", "index=False"),
    "no name": (b"age,,city\n1,31337,Cork\n", "a column has no name"),
    "semicolons": (b"age;city;weight\n31337;Cork;1,5\n", "semicolons"),
    "tabs": (b"age\tcity\n31337\tCork\n", "tabs"),
    "Latin-1": ("age,city\n31337,Århus\n".encode("latin-1"), "not in UTF-8"),
    "Latin-1 in the header": ("age,størrelse\n31337,1\n".encode("latin-1"), "not in UTF-8"),
    "UTF-16": (ROWS.decode().encode("utf-16"), 'encoding="utf-16"'),
    "a name over two lines": (ROWS.replace(b"age", b'"a\nge"', 1), "in one line"),
    "UTF-16 without its mark": (ROWS.decode().encode("utf-16-le"), "in UTF-16"),
    "bzip2": (bz2.compress(ROWS), "is compressed"),
    "xz": (lzma.compress(ROWS), "is compressed"),
    "Parquet": (b"PAR1\x15\x04\xff" + ROWS, "Parquet"),
    "gzip": (gzip.compress(ROWS), "is compressed by gzip"),
    "an archive": (b"PK\x03\x04" + ROWS, "an archive"),
    "a spreadsheet": (b"PK\x03\x04\xff" + ROWS, "spreadsheet"),
    "lines in quotes": (b'"age,city"\n"31337,Cork"\n', "lines stand in quotes"),
    "bars": (ROWS.replace(b",", b"|"), "bars"),
    "a comment": (b"# exported\n" + ROWS, "another number of cells"),
    "a longer row": (ROWS + b"31337,Cork,1\n", "another number of cells"),
    "an open quote": (ROWS + b'31337,"Cork\n1,Cork\n', "quote is not closed"),
    "an open quote in the header": (b'age,"city\n31337,Cork\n', "quote"),
    "a long name": (b"age," + b"x" * 20_000 + b"\n31337,Cork\n", "more than 10000 characters"),
    "a longer name": (b"age," + b"x" * 10_000_000 + b"\n31337,Cork\n", "more than 10000 characters"),
    "nothing": (b"", "no header"),
}


@pytest.mark.parametrize("form", FORMS)
def test_another_form(form, tmp_path, capsys):
    content, word = FORMS[form]
    (tmp_path / "rows.csv").write_bytes(content)
    assert refused(tmp_path / "rows.csv", word, capsys)


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b[:15] + b"31337" + b[20:], lambda _: ROWS])
def test_a_compressed_file_that_is_not_whole(damage, tmp_path, capsys):
    (tmp_path / "rows.csv.gz").write_bytes(damage(gzip.compress(ROWS * 50)))
    assert refused(tmp_path / "rows.csv.gz", "no whole gzip file", capsys)


def refused(path, word, capsys):
    assert main(["init", str(path)]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "Fix: " in line
    assert "31337" not in line
    assert "Cork" not in line
    return word in line.replace(str(path), "")
