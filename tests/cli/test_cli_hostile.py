"""What a hostile file, argument or terminal does to the command line: nothing that is not documented."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from studies import PIPELINE, N, refused, rows

from ppdp import Certificate, Ledger
from ppdp.certificate.document import Certificate as Document
from ppdp.cli.column_parsing import Layout
from ppdp.cli.data_files import open_source
from ppdp.cli.documents import read_document
from ppdp.cli.main import main
from ppdp.cli.output import escaped, prepare
from ppdp.cli.pipeline_file import read_pipeline_file

PLAN = ["plan", "study.toml", "--rows", "1200"]
FIT = ["fit", "study.toml", "--data", "study.csv", "--out", "out"]
SPENT = ["--ledger", "spent.db", "--limit", "50", "1e-3"]
LONG = "9" * 400


def write(study, **changes):
    """The pipeline file with something else in it."""
    text = PIPELINE
    for old, new in changes.values():
        assert old in text
        text = text.replace(old, new, 1)
    (study / "study.toml").write_text(text, encoding="utf-8")


def bad_text(column, cell=b"\xff"):
    """A column of text of which the first cell is no UTF-8, as no writer would write it."""
    cells = [cell, *(str(value).encode() for value in column[1:])]
    ends = np.cumsum([0, *map(len, cells)]).astype(np.int32)
    return pa.Array.from_buffers(pa.string(), len(cells), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(cells))])


def write_table(path, table):
    if path.suffix == ".parquet":
        return pq.write_table(table, path)
    new = pa.ipc.new_file if path.suffix == ".feather" else pa.ipc.new_stream
    with new(path, table.schema) as file:
        file.write_table(table)


class TestCells:
    """A cell that is no UTF-8 is an undeclared value: charged, then repaired or refused, like every other one."""

    @pytest.mark.parametrize("name", ["study.parquet", "study.feather", "study.arrow"])
    def test_text_that_is_none(self, name, study, capsys):
        table = pa.Table.from_pandas(rows(), preserve_index=False)
        place = table.schema.get_field_index("outcome")
        write_table(study / name, table.set_column(place, "outcome", bad_text(table["outcome"].to_pylist())))
        fit = [*FIT[:3], name, *FIT[4:], "--quiet", *SPENT]
        refused(fit, capsys)
        assert [entry.status for entry in Ledger("spent.db").entries()] == ["failed"]
        write(study, rule=('dataset = "clinic"', 'on_invalid = "repair"'))
        assert main(fit) == 0
        assert [entry.status for entry in Ledger("spent.db").entries()] == ["failed", "released"]

    def test_only_that_cell_is_another(self, study):
        table = pa.Table.from_pandas(rows(), preserve_index=False)
        file = read_pipeline_file(study / "study.toml")
        before = Layout.of(open_source(study / "study.parquet"), file).rows((0, 1)).to_pandas()
        wrong = table.set_column(2, "sex", bad_text(table["sex"].to_pylist()).dictionary_encode())
        write_table(study / "study.feather", wrong)
        after = Layout.of(open_source(study / "study.feather"), file).rows((0, 1)).to_pandas()
        assert after["sex"][0] == "\ufffd"
        assert after.drop(index=0).equals(before.drop(index=0))

    def test_labels_are_text_or_numbers_by_their_public_type(self, study, capsys):
        write(study, classes=("classes = [0, 1]", 'classes = ["u", "v"]'))
        pairs = pa.map_(pa.string(), pa.int64())
        columns = [pa.array([["u"]] * N), pa.array([{"u": 1}] * N), pa.array([b"\xff"] * N), pa.nulls(N)]
        for labels in [*columns, pa.array([[("u", 1)]] * N, pairs)]:
            table = pa.Table.from_pandas(rows(), preserve_index=False).set_column(4, "outcome", labels)
            write_table(study / "study.parquet", table)
            line = refused([*FIT[:3], "study.parquet", *FIT[4:], *SPENT], capsys)
            assert "'outcome'" in line
        assert not (study / "spent.db").exists()

    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_a_gap_in_a_file_of_one_column_is_a_row(self, end, tmp_path):
        for ages in (["age", "31", "", "47"], ["age", "31", '""', "47"], ["age", "31", "38", "47"]):
            (tmp_path / "one.csv").write_bytes((end.join(ages) + end).encode())
            assert open_source(tmp_path / "one.csv").n_rows == 3

    def test_a_flipped_bit(self, study, capsys):
        packed = gzip.compress((study / "study.csv").read_bytes(), mtime=0)
        for place in range(10, 1200, 85):
            broken = packed[:place] + bytes([packed[place] ^ 255]) + packed[place + 1 :]
            with pytest.raises((zlib.error, OSError, EOFError)):
                gzip.decompress(broken)
            (study / "study.csv.gz").write_bytes(broken)
            assert "31337" not in refused([*FIT[:3], "study.csv.gz", *FIT[4:]], capsys)


class TestOut:
    """Nothing is charged for what could not be written."""

    @pytest.mark.parametrize("out", ["o" * 300, "o" * 250, "/proc/x", "/dev/fd/x", "spent.db", "./spent.db", "a\0b"])
    def test_places_that_cannot_be(self, out, study, capsys):
        if out.startswith(("/proc", "/dev")) and not os.path.isdir(os.path.dirname(out)):
            pytest.skip("no such place on this system")
        before = sorted(study.iterdir())
        refused([*FIT[:5], out, *SPENT], capsys)
        assert sorted(study.iterdir()) == before

    def test_a_disk_that_does_not_keep_names(self, study, monkeypatch, capsys):
        def fails(_):
            raise OSError(5, "Input/output error")

        monkeypatch.setattr("ppdp.certificate.share.files._settle", fails)
        self.test_places_that_cannot_be("out", study, capsys)

    def test_the_longest_name_that_is_taken_is_written(self, study):
        assert main([*FIT[:5], "o" * 240, "--quiet", *SPENT]) == 0
        assert sorted(path.name for path in (study / ("o" * 240)).iterdir())[-1] == "model.zip"
        assert not [path for path in study.iterdir() if path.name.startswith(".")]


class TestStreams:
    def test_what_a_terminal_has_no_letter_for(self, study, monkeypatch):
        write(study, name=('name = "model"', 'name = "mödel"'))
        for more, shown in (([], "m\\u00f6del"), (["--json"], "m\\u00f6del")):
            out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
            monkeypatch.setattr(sys, "stdout", out)
            assert main([*FIT[:5], f"out{len(more)}", *SPENT, *more]) == 0
            text = out.buffer.getvalue().decode("ascii")
            assert shown in text
        assert json.loads(text)["certificate"]["mechanism"]["name"] == "mödel"

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device on this system")
    def test_a_release_is_there_though_standard_output_is_full(self, study, monkeypatch, capsys):
        self.test_standard_output_that_is_full(FIT, study, monkeypatch, capsys)
        monkeypatch.setattr(sys, "stdout", io.StringIO())
        assert main(["verify", "out/certificate.json", "--quiet"]) == 0

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device on this system")
    def test_nothing_is_added_when_the_interpreter_ends(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            command = [sys.executable, "-m", "ppdp.cli.main", "--version"]
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=120)
        assert done.returncode == 4
        assert done.stderr.startswith("ppdp: done, but standard output cannot be written: ")
        assert done.stderr.count("\n") == 1

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device on this system")
    @pytest.mark.parametrize("arguments", [PLAN, ["help", "fit"], ["fit", "--help"], ["--version"]])
    def test_standard_output_that_is_full(self, arguments, study, monkeypatch, capsys):
        with open("/dev/full", "w", encoding="utf-8") as full:
            monkeypatch.setattr(sys, "stdout", full)
            assert main(arguments) == 4
        line = capsys.readouterr().err
        assert line.startswith("ppdp: done, but standard output cannot be written")
        assert line.count("\n") == 1

    def test_nobody_reads_any_more(self, study, monkeypatch):
        """The exit status is that of the command, not of the reader."""
        certificate = _certificate(study)
        certificate.save(study / "good.json")
        changed = certificate.to_json().replace('"epsilon": 5.0', '"epsilon": 0.5')
        (study / "bad.json").write_text(changed, encoding="utf-8")
        for name, status in (("good.json", 0), ("bad.json", 1)):
            reader, writer = os.pipe()
            os.close(reader)
            with open(writer, "w", encoding="utf-8") as gone:
                monkeypatch.setattr(sys, "stdout", gone)
                assert main(["verify", name]) == status


def _certificate(study):
    assert main([*FIT, "--quiet"]) == 0
    return Certificate.load(study / "out" / "certificate.json")


class TestShow:
    EVIL = "clinic\x1b[2J\nUNCONDITIONAL (0.1, 1e-09)\x9b8m\u202e"

    def test_names_move_no_cursor_and_begin_no_line(self, study, capsys):
        plain = _certificate(study)
        document = plain.to_dict()
        document["facts"][0]["origin"] = self.EVIL
        certificate = Document.sealed(document)
        certificate.save(study / "evil.json")
        for command in (["show", "evil.json"], ["show", "evil.json", "--json"], ["verify", "evil.json"]):
            main(command)
            out, error = capsys.readouterr()
            assert all(c.isprintable() or c == "\n" for c in out + error)
        assert main(["show", "evil.json", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == certificate.to_dict()
        text = certificate.to_text(full=True)
        assert all(c.isprintable() or c == "\n" for c in text)
        assert [line for line in text.splitlines() if line.startswith("UNCONDITIONAL")] == text.splitlines()[:1]

    def test_what_does_not_hold_begins_no_line_either(self, study, capsys):
        document = _certificate(study).to_dict()
        document["mechanism"]["class"] = self.EVIL
        Document.sealed(document).save(study / "evil.json")
        for command in (["show", "evil.json"], ["verify", "evil.json"]):
            assert main(command) == 1
            out, error = capsys.readouterr()
            assert "UNCONDITIONAL (0.1" in out + error
            assert not any(line.startswith("UNCONDITIONAL (0.1") for line in (out + error).splitlines())

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
    def test_what_is_no_file_is_not_waited_for(self, study, capsys):
        os.mkfifo(study / "pipe")
        assert "no ordinary file" in refused(["verify", "pipe"], capsys)
        assert "no ordinary file" in refused(["show", "pipe"], capsys)

    def test_a_link_to_a_certificate_is_followed(self, study):
        _certificate(study)
        (study / "link.json").symlink_to("out/certificate.json")
        assert main(["verify", "link.json", "--quiet"]) == 0


class TestOtherPeoplesCode:
    def test_a_module_that_ends_the_process_says_nothing(self, study, monkeypatch, capsys):
        monkeypatch.syspath_prepend(str(study))
        (study / "quits.py").write_text("import sys\nsys.exit(0)\n")
        (study / "none.json").write_text("{}")
        for arguments in (["lint", "quits.py:pipe"], ["lint", "quits:pipe"]):
            assert "SystemExit" in refused(arguments, capsys)
        for arguments in (PLAN, ["verify", "none.json"], ["show", "none.json"]):
            assert "SystemExit" in refused([*arguments, "--import", "quits"], capsys)

    def test_an_object_that_cannot_be_asked(self, study, capsys):
        (study / "odd.py").write_text("class Odd:\n def __getattr__(self, _): raise RuntimeError\npipe = Odd()\n")
        assert "odd.py:pipe: " in refused(["lint", "odd.py:pipe"], capsys)
        code = "class Odd:\n def fit(self): pass\n def get_params(self, deep): raise SystemExit(0)\npipe = Odd()\n"
        (study / "odd.py").write_text(code)
        assert "SystemExit" in refused(["lint", "odd.py:pipe"], capsys)


NUMBERS = {
    "a float of 5000 digits": ("epsilon = 5.0", f"epsilon = {'9' * 5000}"),
    "an end of a range": ("[0, 110]", f"[0, {LONG}]"),
    "rows": ("rows_per_unit = 1", f"n_rows = {LONG}"),
    "a gap": ("-9]", f"-{LONG}]"),
    "a class": ("classes = [0, 1]", f"classes = [0, {LONG}]"),
    "a class of 65 bits": ("classes = [0, 1]", f"classes = [0, {2**63}]"),
}


class TestPipelineFiles:
    def test_a_pipe_is_not_waited_for(self, study, capsys):
        os.mkfifo(study / "endless.toml")
        started = time.monotonic()
        assert "is no ordinary file" in refused(["plan", "endless.toml", "--rows", "1200"], capsys)
        assert "is no ordinary file" in refused(["predict", "out", "endless.toml", *FIT[2:]], capsys)
        assert time.monotonic() - started < 60

    def test_a_link_to_one_is_followed(self, study, capsys):
        (study / "link.toml").symlink_to(study / "study.toml")
        assert main(["plan", "link.toml", "--rows", "1200"]) == 0

    @pytest.mark.parametrize("case", NUMBERS)
    def test_numbers_that_nothing_holds(self, case, study, capsys):
        write(study, number=NUMBERS[case])
        assert "too long" in refused(PLAN, capsys)
        assert "too long" in refused([*FIT, *SPENT], capsys)

    def test_numbers_of_64_bits_are_read(self, study):
        write(study, number=("-9]", f"{-(2**63)}, {2**63 - 1}]"))
        assert read_document(study / "study.toml")["data"]["missing"][-1] == 2**63 - 1

    @pytest.mark.parametrize("name", ["mo\\ndel", "model\\n", "\\u001b[2J", "\\u0000", "\\u0085", "\\u2028"])
    def test_names_of_steps_are_one_line(self, name, study, capsys):
        write(study, name=('name = "model"', f'name = "{name}"'))
        assert "study.toml: steps[2].name: " in refused(PLAN, capsys)

    @pytest.mark.parametrize("value", ["!!timestamp x", "!!bool x", "!!int ''", "0x" + "f" * 5000, "0b" + "1" * 20000])
    def test_yaml_that_breaks_its_reader(self, value, study, capsys):
        pytest.importorskip("yaml")
        (study / "study.yaml").write_text(f"pipeline: {{epsilon: {value}}}\nsteps: [{{use: PCA}}]\n")
        assert "study.yaml" in refused(["plan", "study.yaml", "--rows", "9"], capsys)

    def test_half_a_character(self, study, capsys):
        pytest.importorskip("yaml")
        (study / "study.yaml").write_text('pipeline: {dataset: "\\ud800"}\nsteps: [{use: PCA}]\n')
        assert "half a character" in refused(["plan", "study.yaml", "--rows", "9"], capsys)

    @pytest.mark.parametrize("levels", [6, 9, 40])
    @pytest.mark.parametrize("use", ["[{0}]", "{{<<: [{0}]}}"])
    def test_references_that_stand_for_millions(self, use, levels, study, capsys):
        pytest.importorskip("yaml")
        lines = ["a0: &a0 {x: 0}" if "<<" in use else "a0: &a0 [0]"]
        lines += [f"a{i}: &a{i} {use.format(', '.join([f'*a{i - 1}'] * 10))}" for i in range(1, levels)]
        last = f"steps: [{{use: LogisticRegression, classes: *a{levels - 1}}}]"
        (study / "study.yaml").write_text("\n".join([*lines, last]))
        assert "references" in refused(["plan", "study.yaml", "--rows", "9"], capsys)

    def test_references_that_stand_for_little_are_followed(self, study):
        pytest.importorskip("yaml")
        (study / "study.yaml").write_text(
            "steps:\n- &step {use: MinMaxScaler, ranges: {a: &r [0, 1], b: *r}}\n- {<<: *step, name: again}\n"
        )
        steps = read_document(study / "study.yaml")["steps"]
        assert [step["ranges"] for step in steps] == [{"a": [0, 1], "b": [0, 1]}] * 2


@pytest.mark.parametrize(
    "arguments",
    [
        [*FIT, *SPENT, "--dataset", ""],
        [*FIT, *SPENT, "--dataset", "\udc80"],
        ["plan", "a\0b.toml", "--rows", "9"],
        ["verify", "a\0b"],
        [*FIT[:5], "out", "--ledger", "a\0b"],
        [*PLAN[:2], "--rows", LONG],
        [*PLAN[:2], "--rows", "9" * 5000],
    ],
)
def test_arguments(arguments, study, capsys):
    before = sorted(study.iterdir())
    refused(arguments, capsys)
    assert sorted(study.iterdir()) == before


class TestInterrupts:
    def test_are_one_line_whatever_a_library_makes_of_them(self, study, monkeypatch, capsys):
        def imported(*_):
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                raise ImportError("the C-extensions failed") from None

        monkeypatch.setattr("ppdp.cli.planning.plan", imported)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
        try:
            assert main(PLAN) == 130
            assert capsys.readouterr().err == "ppdp: interrupted.\n"
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        finally:
            signal.signal(signal.SIGINT, before)

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    def test_an_exit_cleans_up(self, number, study, monkeypatch):
        from ppdp.cli import fit

        release = fit._write

        def stopped(pipe, out, **how):
            with fit._beside(out):
                signal.raise_signal(number)
            return release(pipe, out, **how)

        monkeypatch.setattr(fit, "_write", stopped)
        before = signal.signal(number, signal.SIG_DFL)
        files = sorted(study.iterdir())
        try:
            with pytest.raises(SystemExit) as raised:
                main(["fit", "study.toml", "--data", "study.parquet", "--out", "release", "--quiet"])
            assert raised.value.code == 128 + number
            assert signal.getsignal(number) is signal.SIG_DFL
        finally:
            signal.signal(number, before)
        assert sorted(study.iterdir()) == files

    def test_nothing_is_imported_before_they_are_caught(self):
        code = "import ppdp.cli.main, sys; print([name for name in sys.modules if name.startswith('ppdp.')])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout == "['ppdp.cli', 'ppdp.cli.main']\n"


def test_the_escapes_are_those_of_json():
    prepare()
    text = "a\u00a0ü\x1b\x7f\u202e\U0001f600\ud800"
    assert "ü" in escaped(text)
    assert json.loads(f'"{escaped(text)}"') == text
    assert json.loads(b'"%b"' % text.replace("\x1b", "").encode("ascii", "ppdp")) == text.replace("\x1b", "")
