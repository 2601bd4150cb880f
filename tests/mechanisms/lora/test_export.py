"""What leaves: four files, all of whose bytes are bound, written whole or not at all, and read with errors of ours."""

import json
import os
import shutil

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

from safetensors.torch import load_file, save_file  # noqa: E402
from small_models import gpt2, next_word, small, texts  # noqa: E402

from ppdp.cli.main import main  # noqa: E402
from ppdp.exceptions import CertificateError, ExportError, InvalidParameter  # noqa: E402
from ppdp.mechanisms.lora import PrivateLoRA, certified  # noqa: E402

PUBLIC = {"n_rows": 60, "batch_size": 20, "steps": 1, "epsilon": 2.0, "delta": 1e-5, "isolation": None}
FILES = {"README.md", "adapter_config.json", "adapter_model.safetensors", "certificate.json"}


@pytest.fixture(scope="module")
def training():
    return PrivateLoRA(small("twice"), next_word, probe=texts(2, seed=9), **PUBLIC).fit(texts(50))


@pytest.fixture
def folder(training, tmp_path):
    return tmp_path / training.export(tmp_path / "adapter", conditional=True)


def test_four_files_the_same_each_time(training, folder, tmp_path):
    assert {one.name for one in folder.iterdir()} == FILES
    again = tmp_path / "again"
    training.export(again, conditional=True)
    assert all((folder / name).read_bytes() == (again / name).read_bytes() for name in FILES)
    assert certified(folder) == certified(str(again)) == training.certificate_
    (tmp_path / "link").symlink_to(folder)
    assert certified(tmp_path / "link").verify()


def test_the_command_checks_the_folder(folder, capsys):
    assert main(["verify", str(folder)]) == 0
    assert "NOT CHECKED" not in capsys.readouterr().out
    (folder / "README.md").write_text("another")
    assert main(["verify", str(folder)]) == 1


def test_every_entry_of_the_configuration_is_bound(folder):
    config = json.loads((folder / "adapter_config.json").read_bytes())
    assert len(config) > 15
    for name, value in config.items():
        for other in ("x", 7, None, [], {"a": 1}, True):
            if other != value:
                (folder / "adapter_config.json").write_text(
                    json.dumps({**config, name: other}, indent=2, sort_keys=True)
                )
                with pytest.raises(ExportError, match="not the one"):
                    certified(folder)
    (folder / "adapter_config.json").write_text(json.dumps({**config, "more": 1}))
    with pytest.raises(ExportError, match="not the one"):
        certified(folder)


@pytest.mark.parametrize("name", ["adapter_model.bin", "modeling.py", ".hidden", "sub/x", "pytorch_model.safetensors"])
def test_no_other_file(folder, name):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(b"import os")
    with pytest.raises(ExportError, match="not of the export"):
        certified(folder)


BROKEN = [
    b"",
    b"{",
    b"[" * 10**5,
    b"\xff\xfe",
    b"null",
    b"[]",
    b"7",
    b"{}",
    b"\xff" * 8 + b"{}",
    (2**60).to_bytes(8, "little"),
]


@pytest.mark.parametrize("name", sorted(FILES))
def test_whatever_a_file_holds_the_errors_are_ours(folder, name):
    whole = (folder / name).read_bytes()
    for data in (*BROKEN, whole[:-1], whole + b" ", whole[1:], whole[: len(whole) // 2]):
        if name == "certificate.json" and data.strip() == whole.strip():
            continue
        (folder / name).write_bytes(data)
        with pytest.raises((ExportError, CertificateError)):
            certified(folder)
    (folder / name).unlink()
    with pytest.raises(ExportError, match="cannot be read"):
        certified(folder)
    (folder / name).symlink_to("/etc/hostname")
    with pytest.raises(ExportError):
        certified(folder)
    (folder / name).unlink()
    (folder / name).mkdir()
    with pytest.raises(ExportError):
        certified(folder)


def test_other_tensors_shapes_and_types_are_others(folder):
    weights = folder / "adapter_model.safetensors"
    tensors = load_file(weights)
    first = next(name for name in sorted(tensors) if "lora_B" in name)
    reshaped = {**tensors, first: tensors[first].reshape(tensors[first].shape[::-1])}
    for other in (reshaped, {**tensors, first: tensors[first].double()}, {**tensors, "more": torch.ones(1)}, {}):
        save_file(other, weights)
        with pytest.raises(ExportError, match="not the one"):
            certified(folder)


def test_folders_that_are_none(training, folder, tmp_path):
    for wrong in (tmp_path / "nowhere", folder / "certificate.json", "", "\0", 7, None, b"x"):
        with pytest.raises((ExportError, InvalidParameter)):
            certified(wrong)
    with pytest.raises(InvalidParameter, match="folder must be the path"):
        training.export("\ud800", conditional=True)


@pytest.mark.parametrize("where", ["mkdtemp", "fsync", "rename"])
def test_nothing_is_left_of_an_export_that_fails(training, tmp_path, monkeypatch, where):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    target = "tempfile.mkdtemp" if where == "mkdtemp" else f"os.{where}"
    with monkeypatch.context() as patched:
        patched.setattr(target, full)
        with pytest.raises(ExportError, match="cannot write"):
            training.export(tmp_path / "adapter", conditional=True)
    assert os.listdir(tmp_path) == []


def test_an_adapter_of_another_name_is_read_like_others(tmp_path):
    from peft import LoraConfig, PeftModel, get_peft_model

    torch.manual_seed(0)
    config = LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True, task_type="CAUSAL_LM", lora_dropout=0.05)
    model = get_peft_model(gpt2(), config, adapter_name="mine")
    training = PrivateLoRA(model, next_word, probe=texts(2), learning_rate=0.5, **PUBLIC).fit(texts(50))
    folder = training.export(tmp_path / "adapter", conditional=True)
    assert certified(folder).verify()
    torch.manual_seed(0)
    again = PeftModel.from_pretrained(gpt2(), folder).eval()
    ids = texts(3)["ids"]
    with torch.no_grad():
        assert torch.allclose(again(ids).logits, model.eval()(ids).logits, atol=1e-6)
    shutil.rmtree(folder)
