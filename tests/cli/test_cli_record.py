"""``ppdp record``: the record that Python makes, from a file of what only people know."""

import json
import sys
from pathlib import Path

import pytest
from studies import refused
from zoo import certificate

from ppdp.cli.main import main

yaml = pytest.importorskip("yaml")

ABOUT = """\
name = "Besøk"
description = "A model of visits."
intended_use = "Planning of shifts."
region = "Norway"
publication_date = 2026-11-21
authors = ["Ann Author"]
[curators]
"Our clinic" = "Nonprofit"
[further.deployment_model]
release_type = "One release"
"""
FACTS = {
    "name": "Besøk",
    "description": "A model of visits.",
    "intended_use": "Planning of shifts.",
    "region": "Norway",
    "publication_date": "2026-11-21",
    "authors": ["Ann Author"],
    "curators": {"Our clinic": "Nonprofit"},
    "further": {"deployment_model": {"release_type": "One release"}},
}
RECORD = ["record", "c.json", "about.toml"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    certificate("unconditional").save("c.json")
    (tmp_path / "about.toml").write_text(ABOUT, encoding="utf-8")
    return tmp_path


def printed(arguments, capsys):
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_it_is_that_of_python_in_both_forms(folder, capsys):
    wanted = certificate("unconditional").to_registry_record(**FACTS)
    text = printed(RECORD, capsys)
    assert "name: Besøk\n" in text
    assert yaml.safe_load(text) == wanted
    assert json.loads(printed([*RECORD, "--json"], capsys)) == wanted
    (folder / "about.yaml").write_text(yaml.safe_dump(FACTS), encoding="utf-8")
    assert yaml.safe_load(printed(["record", "c.json", "about.yaml"], capsys)) == wanted


def test_what_no_terminal_shows_survives(folder, capsys):
    """A soft hyphen and a joiner are letters for YAML, and not for a terminal."""
    name = "vis\u00adits\u200d \u001b[2J"
    (folder / "about.toml").write_text(ABOUT.replace('"Besøk"', json.dumps(name)), encoding="utf-8")
    text = printed(RECORD, capsys)
    assert text.isascii()
    assert yaml.safe_load(text)["deployment"]["basic"]["name"] == name


def test_without_yaml_there_is_json(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert "ppdp[yaml]" in refused(RECORD, capsys, 2)
    assert json.loads(printed([*RECORD, "--json"], capsys))["deployment"]


def test_a_condition_is_told_only_if_asked(capsys):
    certificate("conditional").save("c.json")
    line = refused(RECORD, capsys, 1)
    assert "CONDITIONAL" in line
    assert "Fix: --conditional" in line
    assert yaml.safe_load(printed([*RECORD, "--conditional"], capsys))["deployment"]


@pytest.mark.parametrize(("name", "words"), [("seeded", "seed"), ("classes read", "private labels")])
def test_what_may_not_leave(name, words, capsys):
    certificate(name).save("c.json")
    assert words in refused([*RECORD, "--conditional"], capsys, 1)


def test_what_does_not_hold(folder, capsys):
    text = (folder / "c.json").read_text()
    (folder / "c.json").write_text(text.replace('"replaced": 1', '"replaced": 2', 1))
    assert "digest" in refused(RECORD, capsys, 1)


@pytest.mark.parametrize(
    ("old", "new", "place", "fix"),
    [
        ('name = "Besøk"\n', "", "about.toml: 'name' is missing", "add name"),
        ('region = "Norway"', 'regoin = "Norway"', "about.toml: regoin: ", "'region'"),
        ('"Nonprofit"', '"Hospital"', "about.toml: curators.Our clinic: ", "Government"),
        ("2026-11-21", '"1/1/2026"', "about.toml: publication_date must be a day", "2026-11-21"),
        ("2026-11-21", "3", "about.toml: publication_date: ", "text"),
        ("[further.deployment_model]", "[further.privacy]", "about.toml: further has no section", "basic"),
        ("[further.deployment_model]\nrelease_type", "[further.basic]\nname", "about.toml: name of 'basic'", ""),
        ('["Ann Author"]', "[]", "about.toml: authors: ", "at least 1"),
        ("name = ", "name = = ", "about.toml, line 1", "correct the line"),
    ],
)
def test_what_the_file_says_wrong(folder, capsys, old, new, place, fix):
    assert old in ABOUT
    (folder / "about.toml").write_text(ABOUT.replace(old, new, 1), encoding="utf-8")
    line = refused(RECORD, capsys, 2)
    assert place in line
    assert fix in line.partition("Fix: ")[2]


@pytest.mark.parametrize("about", ["none.toml", "c.json", "empty.toml"])
def test_what_is_no_file_of_facts(folder, about, capsys):
    (folder / "empty.toml").touch()
    line = refused(["record", "c.json", about], capsys, 2)
    assert line.startswith(f"ppdp: error: {about}: ")
    assert "pipeline" not in line


def test_the_file_in_the_guide_is_one(folder, capsys):
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "command-line.md").read_text("utf-8")
    (block,) = [part for part in guide.split("```toml\n")[1:] if "publication_date" in part]
    (folder / "about.toml").write_text(block.split("```")[0], encoding="utf-8")
    assert yaml.safe_load(printed(RECORD, capsys))["url_slug"] == "visits-our-clinic-2026"
