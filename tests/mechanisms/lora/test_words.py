"""What model, loss and handlers raise behind the charge comes out without a word of theirs."""

import asyncio
import traceback

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from small_models import WORDS, after_step, next_word, small, texts  # noqa: E402

from ppdp.exceptions import BudgetExceeded, InvalidParameter, PpdpError, StageFailed  # noqa: E402
from ppdp.mechanisms.lora import PrivateLoRA  # noqa: E402

PUBLIC = {"n_rows": 10, "batch_size": 10, "steps": 1, "epsilon": 2.0, "delta": 1e-5, "isolation": None}
RARE, SECRET = WORDS - 1, "zebedee"


def noted(error):
    error.add_note(SECRET)
    error.word = SECRET
    return error


class Interrupt(KeyboardInterrupt):
    def __str__(self):
        return SECRET


class Said(PpdpError):
    def __str__(self):
        return SECRET


RAISED = {
    "an interrupt": (lambda: noted(KeyboardInterrupt(SECRET)), KeyboardInterrupt),
    "one of a class of its own": (lambda: Interrupt(), KeyboardInterrupt),
    "an exit": (lambda: noted(SystemExit(SECRET)), SystemExit),
    "an exit with a number": (lambda: SystemExit(39), SystemExit),
    "the end of a generator": (lambda: noted(GeneratorExit(SECRET)), GeneratorExit),
    "several": (lambda: BaseExceptionGroup(SECRET, [KeyboardInterrupt(SECRET)]), StageFailed),
    "a cancelled task": (lambda: asyncio.CancelledError(SECRET), StageFailed),
    "a class by that name": (lambda: type(SECRET, (Exception,), {})(), StageFailed),
    "an error of ppdp's": (lambda: noted(InvalidParameter(SECRET, stage=SECRET, fix=SECRET)), StageFailed),
    "a kind of it": (lambda: Said(""), StageFailed),
    "no budget": (lambda: BudgetExceeded(SECRET), StageFailed),
    "the end of an iterator": (lambda: StopIteration(SECRET), StageFailed),
}


@pytest.mark.parametrize("where", ["the loss", "a handler"])
@pytest.mark.parametrize("way", RAISED)
def test_no_word_comes_out(way, where):
    make, kind = RAISED[way]

    def stop():
        raise make()

    def loss(model, batch):
        if where == "the loss" and (batch["ids"] == RARE).any():
            stop()
        return next_word(model, batch)

    examples = {"ids": texts(10)["ids"].clamp(max=RARE - 1)}
    training = PrivateLoRA(small("twice"), loss, probe={name: one[:2] for name, one in examples.items()}, **PUBLIC)
    examples["ids"][:, 2] = RARE
    with after_step(stop if where == "a handler" else lambda: None), pytest.raises(BaseException) as raised:
        training.fit(examples)
    assert type(raised.value) is kind
    assert not isinstance(raised.value, SystemExit) or raised.value.code == 1
    whole = "".join(traceback.format_exception(raised.value))
    assert SECRET not in whole + repr(vars(raised.value)) + repr(raised.value.args)
    assert not hasattr(raised.value, "__notes__")
    assert raised.value.__context__ is raised.value.__cause__ is None


class Read(dict):
    """A table that is read when it is asked for."""

    def __init__(self, error):
        super().__init__(texts(10))
        self.error = error

    def __getitem__(self, name):
        raise self.error


@pytest.mark.parametrize("error", [InvalidParameter, BudgetExceeded, ValueError, UserWarning, KeyboardInterrupt])
def test_no_word_of_a_table_comes_out(error):
    training = PrivateLoRA(small("twice"), next_word, probe=texts(2), **PUBLIC)
    with pytest.raises(KeyboardInterrupt if error is KeyboardInterrupt else StageFailed) as raised:
        training.fit(Read(error(SECRET)))
    assert SECRET not in "".join(traceback.format_exception(raised.value)) + repr(vars(raised.value))
    assert training._charged is None


@pytest.mark.parametrize("kept", ["the loss", "the model"])
def test_no_key_is_named(kept):
    """As of a count of words that another thread keeps."""
    words = {SECRET: 0}
    model = small("twice")
    loss = (lambda model, batch, words=words: next_word(model, batch)) if kept == "the loss" else next_word
    model.words_seen = words if kept == "the model" else None
    training = PrivateLoRA(model, loss, probe=texts(2), **PUBLIC)
    count = lambda: words.update({SECRET: 1})  # noqa: E731
    with after_step(count), pytest.raises(StageFailed, match=r"in the (model|loss)\.") as raised:
        training.fit(texts(10))
    assert SECRET not in str(raised.value)
