"""The examples: short runs of what a reader runs, and the pieces they are made of."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tensorrt_lite as trt

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SMALL_GPT = [
    "--layers",
    "1",
    "--width",
    "16",
    "--heads",
    "2",
    "--context",
    "16",
    "--batch",
    "4",
    "--warmup",
    "2",
    "--length",
    "40",
]


@pytest.fixture(autouse=True)
def examples_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))


@pytest.fixture
def digits():
    pytest.importorskip("sklearn")
    import digits

    return digits


@pytest.fixture
def char_gpt():
    pytest.importorskip("tqdm")
    pytest.importorskip("matplotlib")
    import char_gpt

    return char_gpt


@pytest.fixture
def tiny_gpt(char_gpt):
    trt.manual_seed(0)
    return char_gpt.CharGPT(vocabulary=11, context=8, layers=1, width=16, heads=2, dropout=0.5)


# digits


def test_digits_learns_within_a_few_epochs(digits, tmp_path, capsys):
    assert digits.main(["--epochs", "4", "--output", str(tmp_path)]) > 0.95
    assert re.search(r"^held-out accuracy: \d+\.\d %$", capsys.readouterr().out, re.MULTILINE)


def test_digits_writes_plots_and_a_checkpoint(digits, tmp_path):
    digits.main(["--epochs", "1", "--output", str(tmp_path)])
    for name in ("learning_curve.png", "confusion_matrix.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert set(trt.load(tmp_path / "digits.pt")) == {"model", "accuracy"}


def test_digits_repeats_itself_with_the_same_seed(digits, tmp_path):
    arguments = ["--epochs", "1", "--seed", "3", "--threads", "1", "--output", str(tmp_path)]
    digits.main(arguments)
    first = trt.load(tmp_path / "digits.pt")["model"]
    digits.main(arguments)
    second = trt.load(tmp_path / "digits.pt")["model"]
    assert all(trt.equal(first[name], second[name]) for name in first)


def test_digits_holds_a_fifth_out_and_none_of_it_is_trained_on(digits):
    training, held_out = digits.load_data(seed=0)
    assert (len(training), len(held_out)) == (1437, 360)
    assert training.tensors[0].shape[1:] == (1, 8, 8)
    assert float(training.tensors[0].min()) == 0.0
    assert float(training.tensors[0].max()) == 1.0


def test_a_script_whose_output_is_no_terminal_prints_lines_without_a_bar(digits, tmp_path):
    command = [sys.executable, str(EXAMPLES / "digits.py"), "--epochs", "1", "--output", str(tmp_path)]
    run = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)
    assert "epoch   1 of 1" in run.stdout
    assert "\r" not in run.stdout + run.stderr
    assert "\x1b" not in run.stdout + run.stderr


# char_gpt


def test_char_gpt_trains_saves_reloads_and_writes(char_gpt, tmp_path, capsys):
    char_gpt.main(["--steps", "3", *SMALL_GPT, "--prompt", "The ", "--output", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "checkpoint reloaded, logits equal" in printed
    assert len(printed.split("\n\n", 1)[1].rstrip("\n")) >= len("The ")
    assert "\n\nThe " in printed
    assert (tmp_path / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert set(trt.load(tmp_path / "char_gpt.pt")) == {"model", "characters", "shape"}


def test_char_gpt_learns_the_text_within_120_steps(char_gpt, tmp_path, capsys):
    """Below 2.9 nats a character is under the entropy of single characters (3.1): it has learned what follows what."""
    arguments = ["--steps", "120", "--layers", "2", "--width", "64", "--context", "32", "--batch", "16", "--warmup", "10", "--length", "20"]
    text = char_gpt.Corpus.from_pydoc()
    shares = trt.bincount(text.train).float() / len(text.train)
    entropy = -(shares * shares.clamp(min=1e-12).log()).sum().item()
    assert char_gpt.main([*arguments, "--output", str(tmp_path)]) < 0.93 * entropy


def test_char_gpt_repeats_itself_with_the_same_seed(char_gpt, tmp_path, capsys):
    arguments = ["--steps", "3", *SMALL_GPT, "--seed", "4", "--output", str(tmp_path)]
    char_gpt.main(arguments)
    first = capsys.readouterr().out.split("\n\n", 1)[1]
    char_gpt.main(arguments)
    assert capsys.readouterr().out.split("\n\n", 1)[1] == first


def test_char_gpt_gets_better(char_gpt):
    trt.manual_seed(0)
    options = char_gpt.parse_arguments(["--steps", "60", *SMALL_GPT])
    corpus = char_gpt.Corpus("the quick brown fox jumps over the lazy dog. " * 50)
    model = char_gpt.CharGPT(len(corpus.characters), 16, layers=1, width=16, heads=2, dropout=0.0)
    losses = char_gpt.train(model, corpus, options)
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])


def test_char_gpt_sees_only_the_past(tiny_gpt):
    tiny_gpt.eval()
    tokens = trt.arange(8).unsqueeze(0)
    changed = tokens.clone()
    changed[0, 5] = 10
    with trt.no_grad():
        before, after = tiny_gpt(tokens), tiny_gpt(changed)
    assert trt.allclose(before[:, :5], after[:, :5], atol=1e-6)
    assert not trt.allclose(before[:, 5:], after[:, 5:], atol=1e-6)


def test_sampling_continues_the_prompt_beyond_the_context(char_gpt, tiny_gpt):
    written = char_gpt.sample(tiny_gpt, trt.tensor([1, 2, 3]), length=20, temperature=1.0, top_k=None)
    assert written.shape == (23,)
    assert written[:3].tolist() == [1, 2, 3]
    assert 0 <= int(written.min()) <= int(written.max()) < 11


def test_top_1_sampling_is_the_greedy_choice(char_gpt, tiny_gpt):
    prompt = trt.tensor([4])
    greedy = char_gpt.sample(tiny_gpt, prompt, length=10, temperature=0, top_k=None)
    assert trt.equal(char_gpt.sample(tiny_gpt, prompt, length=10, temperature=2.0, top_k=1), greedy)


def test_targets_are_the_inputs_one_character_later(char_gpt):
    inputs, targets = char_gpt.draw_batch(trt.arange(100), batch=6, context=9, device="cpu")
    assert inputs.shape == targets.shape == (6, 9)
    assert trt.equal(inputs + 1, targets)


def test_the_corpus_decodes_what_it_encodes(char_gpt):
    corpus = char_gpt.Corpus.from_pydoc()
    assert corpus.decode(corpus.encode("import this")) == "import this"
    assert len(corpus.train) > 8 * len(corpus.held_out) > 100_000


def test_the_schedule_warms_up_and_then_falls_to_its_floor(char_gpt):
    factor = char_gpt.cosine_with_warmup(steps=100, warmup=10, floor=0.1)
    rising, falling = [factor(step) for step in range(10)], [factor(step) for step in range(10, 101)]
    assert rising == sorted(rising)
    assert rising[-1] == falling[0] == 1.0
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] == pytest.approx(0.1)


def test_width_must_be_divisible_by_heads(char_gpt):
    with pytest.raises(ValueError, match="width 10 is not divisible by 4 heads"):
        char_gpt.CharGPT(vocabulary=5, context=4, layers=1, width=10, heads=4, dropout=0.0)


def test_custom_operator():
    result = subprocess.run([sys.executable, str(EXAMPLES / "custom_operator.py")], check=True, capture_output=True, text=True)
    error = float(re.search(r"largest error on cpu: (\S+)", result.stdout)[1])
    first, last = map(float, re.search(r"loss (\S+) to (\S+)", result.stdout).groups())
    assert error < 1e-6 and last < 0.1 < first


def test_custom_device_trains_as_the_cpu_does():
    done = subprocess.run([sys.executable, "-W", "ignore", str(EXAMPLES / "custom_device.py"), "--steps", "8"], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent)}, check=False)
    assert done.returncode == 0, done.stderr
    difference = re.search(r"largest difference (\S+)", done.stdout)
    assert difference and float(difference[1]) < 1e-4 and "two streams: 2000" in done.stdout, done.stdout
