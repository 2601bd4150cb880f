"""Files at paths: each once, and all of them or none."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from ppdp.data.engine import files
from ppdp.data.engine.arrow import opened
from ppdp.exceptions import InvalidInput

TABLE = pa.table({"a": np.arange(100.0)})


@pytest.fixture
def folder(tmp_path):
    """Two files, one of them in a subfolder."""
    (tmp_path / "rows" / "more").mkdir(parents=True)
    pq.write_table(TABLE, tmp_path / "rows" / "1.parquet", row_group_size=50)
    pq.write_table(TABLE, tmp_path / "rows" / "more" / "2.parquet")
    return tmp_path / "rows"


def paths(folder):
    return [folder, f"{folder}/**/*.parquet", f"{folder}/**"]


def hard_link(folder):
    os.link(folder / "1.parquet", folder / "3.parquet")


def symbolic_link(folder):
    (folder / "more" / "3.parquet").symlink_to(folder / "1.parquet")


class TestRowsCountOnce:
    @pytest.mark.parametrize("link", [hard_link, symbolic_link])
    def test_links_to_one_file_are_refused(self, folder, link):
        link(folder)
        datasets = [ds.dataset(folder, format="parquet"), ds.dataset([ds.dataset(folder), ds.dataset(folder / "more")])]
        for given in [*paths(folder), *datasets]:
            with pytest.raises(InvalidInput, match="twice"):
                opened(given)

    def test_a_file_named_twice_is_refused(self, folder):
        file = str(folder / "1.parquet")
        within = pa.fs.SubTreeFileSystem(str(folder), pa.fs.LocalFileSystem())
        for given in (
            [file, f"{folder}/*.parquet"],
            [folder, file],
            ds.dataset([file, file]),
            ds.dataset([ds.dataset(file), ds.dataset(folder)]),
            ds.dataset([ds.dataset(file), ds.dataset("1.parquet", filesystem=within)]),
        ):
            with pytest.raises(InvalidInput, match="twice"):
                opened(given)

    def test_row_groups_of_one_file_may_stand_apart(self, folder):
        (whole,) = ds.dataset(folder / "1.parquet").get_fragments()
        first, second = (whole.subset(row_group_ids=[group]) for group in (0, 1))
        schema, kind = TABLE.schema, ds.ParquetFileFormat()
        apart = ds.FileSystemDataset([first, second], schema, kind, whole.filesystem)
        assert opened(apart).n == 100
        with pytest.raises(InvalidInput, match="twice"):
            opened(ds.FileSystemDataset([first, whole], schema, kind, whole.filesystem))


class TestAllOrNone:
    def test_every_file_is_read(self, folder):
        for given in paths(folder):
            assert opened(given).n == 200

    def test_a_folder_that_cannot_be_listed_is_refused(self, folder, monkeypatch):
        listed = os.scandir

        def refusing(path="."):
            if str(path).endswith("more"):
                raise PermissionError(13, "Permission denied", str(path))
            return listed(path)

        monkeypatch.setattr(os, "scandir", refusing)
        for given in [*paths(folder), f"{folder}/*/2.parquet"]:
            with pytest.raises(InvalidInput, match="cannot be listed"):
                opened(given)
        assert opened(f"{folder}/*.parquet").n == 100

    @pytest.mark.parametrize("kind", ["dangling link", "pipe"])
    def test_neither_file_nor_folder_is_refused(self, folder, kind):
        other = folder / "more" / "3.parquet"
        other.symlink_to(folder / "absent.parquet") if kind == "dangling link" else os.mkfifo(other)
        for given in [*paths(folder), other]:
            with pytest.raises(InvalidInput, match=r"is not there|neither a file nor a folder"):
                opened(given)

    def test_a_folder_among_the_files_of_a_glob_is_refused_as_one(self, folder):
        with pytest.raises(InvalidInput, match="is a folder"):
            opened(f"{folder}/*")

    def test_a_link_to_a_folder_is_refused_in_a_folder(self, folder, tmp_path):
        (tmp_path / "other").mkdir()
        pq.write_table(TABLE, tmp_path / "other" / "3.parquet")
        (folder / "linked").symlink_to(tmp_path / "other")
        with pytest.raises(InvalidInput, match="link to a folder"):
            opened(folder)
        assert opened(f"{folder}/**/*.parquet").n == 300

    def test_hidden_files_hold_no_rows(self, folder):
        (folder / "_SUCCESS").touch()
        (folder / ".cache").mkdir()
        (folder / ".cache" / "x").touch()
        assert opened(folder).n == 200

    def test_no_message_holds_values_of_rows(self, tmp_path):
        (tmp_path / "city=Cork").mkdir()
        (tmp_path / "city=Cork" / "1.parquet").symlink_to("absent")
        with pytest.raises(InvalidInput) as caught:
            files.files_at([str(tmp_path)])
        assert "Cork" not in str(caught.value)
