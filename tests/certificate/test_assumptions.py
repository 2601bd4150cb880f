"""The first screen of every form says what the promise rests on, and who says so."""

import numpy as np
import pandas as pd
import pytest
from documents import registry_sections, render_card, render_fragment, render_page, render_text, rests_on
from pages import Reader, replaced
from zoo import ZOO, document

from ppdp import Domain, Pipeline, make_pipeline
from ppdp.bounds import FORMULAS
from ppdp.certificate.facts import MIN_FILLED as FILLED
from ppdp.certificate.pages.assumptions import MOST_NAMED
from ppdp.certificate.pages.statement import minus, typeset
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import MinMaxScaler, NormClipper

ASSUMED = "That each person has one row is assumed; rows_per_unit=1 would state it."


def text(c):
    return " ".join(render_text(c).split())


def page(c):
    return Reader(render_page(c)).text


def notebook(c):
    """What is folded behind the glance."""
    return Reader(render_fragment(c)).text.partition("All of it")[2]


def card(c):
    return " ".join(render_card(c).replace("\\", "").split())


def record(c):
    return registry_sections(c)["privacy_loss"]["privacy_parameters_details"]


everywhere = pytest.mark.parametrize("form", [text, page, notebook, card, record])


def told(name):
    return " ".join(rests_on(document(name)))


@everywhere
@pytest.mark.parametrize("name", ["unconditional", "row map", "public", "a hidden pass", "conditional", "seeded"])
def test_every_form_says_it_before_its_figures(form, name):
    c = document(name)
    shown = form(c)
    assert rests_on(c)
    printed = {page: lambda words: minus(typeset(words)), notebook: typeset}.get(form, str)
    places = [shown.index(printed(words.rstrip("."))) for words in rests_on(c)]
    assert places == sorted(places)
    later = {"text": "adjacency ", "page": "What it means An attacker knows", "notebook": "Protected:", "card": "| ε |"}
    if form.__name__ in later:
        assert places[-1] < shown.index(later[form.__name__])


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.repeated("name", keep=34)
def test_every_declared_fact_of_every_certificate_is_among_them(name):
    c, words = document(name), told(name)
    for fact in c["facts"]:
        if fact["origin"].startswith(("declared", "parameter of the model")) and fact["name"] not in (
            "rows_per_unit",
            "adjacency",
        ):
            said = ("as filled in",) if fact["name"] == FILLED else (fact["name"], fact["value"])
            assert any(one in words for one in said) or " more" in words, fact


def test_a_least_number_of_filled_entries_is_said_as_what_it_does():
    c = document("row map")
    for value, shown in (("0.7", 2100), ("0.1255", 377), ("300", 300)):
        fact = {"name": "fewest observed entries of a column", "value": value, "origin": "declared, step 'impute'"}
        (words,) = (words for words in rests_on({**c, "facts": [*c["facts"], fact]}) if "Settings: " in words)
        assert f"step 'impute' expects {shown}+ filled cells in a column (if fewer, less" in words


def test_the_order_of_rows_is_said_where_it_matters():
    assert {name for name in ZOO if "order of the rows" in told(name)} == {
        "rows",
        "projected rows",
        "Laplace rows",
        "pure rows of a change",
        "signs",
        "signs and a matrix",
        "smooth signs",
        "responses",
        "Laplace signs",
        "changed signs",
        "epochs",
        "a hidden pass",
    }


def test_long_lists_end():
    width = 50
    issued = make_pipeline(MinMaxScaler([(0, 1 + i) for i in range(width)]), GaussianMechanism())
    (limits,) = [
        words
        for words in rests_on(issued.fit(np.zeros((300, width))).certificate_.to_dict())
        if "Declared limits" in words
    ]
    assert f"and {width - MOST_NAMED} more" in limits
    assert len(limits) < 400


def test_up_to_twelve_columns_are_named_and_what_several_stages_say_once():
    columns = [f"c{i}" for i in range(MOST_NAMED)]
    frame = pd.DataFrame(np.zeros((300, MOST_NAMED)), columns=columns)
    box = MinMaxScaler(dict.fromkeys(columns, (0, 1 / 3)))
    limits = rests_on(make_pipeline(box, GaussianMechanism()).fit(frame).certificate_.to_dict())[1]
    named = ", ".join(f"{name} (0 to 0.3334)" for name in columns)
    assert limits.startswith(
        f"Declared limits: values are clipped to these, rounded outwards: range of {named}. If any was taken"
    )


def test_a_fact_of_an_unknown_origin_is_somebodys_word():
    c = document("unconditional")
    c["facts"].append({"name": "weather", "value": "fine", "origin": "the janitor"})
    assert "Declared of 'weather': fine (the janitor)." in rests_on(c)


def test_a_bound_that_is_not_ours_is_said(monkeypatch):
    c = document("unconditional")
    formula = c["steps"][1]["formula"]
    assert "none of ppdp's" not in " ".join(rests_on(c))
    monkeypatch.delitem(FORMULAS, formula)
    assert any(f"The bound '{formula}'" in words and "vouches" in words for words in rests_on(c))


# ---------------------------------------------------------------- rows of one person


def fitted(**parameters):
    frame = pd.DataFrame(np.zeros((400, 2)), columns=["a", "b"])
    return Pipeline([("clip", NormClipper()), ("mean", GaussianMechanism())], **parameters).fit(frame).certificate_


def test_one_row_for_each_person_is_declared_or_assumed():
    assumed, declared, several = (fitted(domain=d) for d in (None, Domain(rows_per_unit=1), Domain(rows_per_unit=2)))
    assert ASSUMED in rests_on(assumed.to_dict())
    for certificate, words in (
        (declared, "no person has more than one row"),
        (several, "no person has more than 2 rows"),
    ):
        assert f"Declared: {words}." in rests_on(certificate.to_dict())
        assert "not declared" not in certificate.to_text(full=True)
        assert "default" not in [fact["origin"] for fact in certificate["facts"] if fact["name"] == "rows_per_unit"]
        assert certificate.verify()


def test_a_domain_that_is_changed_remembers_who_declared_the_unit():
    for domain, declared in ((Domain(), False), (Domain(rows_per_unit=1), True)):
        assert domain.but(n_rows=5).unit_declared is declared
        assert domain.rows_per_unit == 1
    assert Domain().but(rows_per_unit=1).unit_declared


@everywhere
def test_neighbours_of_people_with_several_rows_differ_in_all_of_them(form):
    shown = form(document("three rows each"))
    assert "replace one row" not in shown
    assert "any 3 rows of one person" in shown or form is record


# ---------------------------------------------------------------- what is not true of every certificate


def test_the_page_of_a_ladder_says_that_the_rows_chose_the_rung():
    """A snapshot has what else it says."""
    assert "the least final noise was chosen" not in page(document("on a ladder"))
    looser = page(replaced(document("on a ladder"), ("gate", "ladder", "rung"), 1))
    assert looser.index("did not pass") < looser.index("passed, used") < looser.index("not needed")


def test_the_least_noise_is_said_to_be_chosen_only_where_it_was():
    c = document("unconditional")
    assert "the least final noise was chosen" in page(c)
    others = [i for i, a in enumerate(c["alternatives"]) if a["status"] == "offered"]
    assert "the least final noise was chosen" not in page(replaced(c, ("alternatives", others[0], "noise_scale"), 1e-9))
