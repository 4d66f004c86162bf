"""A multilingual model loses layers and tokens, and no word becomes unknown."""

import json
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from similarity.errors import InvalidInput
from training.model.weights import load_tokenizer, load_transformer
from training.prune import chosen_tokens, main, scripts_of

pytestmark = pytest.mark.training

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
TOKENS = ["▁", "b", "o", "a", "t", "▁boat", "店", "お店", "ж", "▁ж", "1"]


@pytest.fixture
def multilingual(tmp_path: Path) -> Path:
    """A model of three layers with a unigram tokenizer of three scripts."""
    tokenizer = Tokenizer(models.Unigram([*((each, 0.0) for each in SPECIAL), *((t, -2.0) for t in TOKENS)], unk_id=3))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    names = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    folder = tmp_path / "multilingual"
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(SPECIAL) + len(TOKENS),
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        pad_token_id=1,
    )
    BertModel(config).save_pretrained(folder)
    return folder


def pruned(folder: Path, *, layers: str = "0 2", scripts: str = "LATIN CJK HIRAGANA", tokens: int = 12) -> Path:
    output = folder.parent / "pruned"
    given = f"--model {folder} --layers {layers} --scripts {scripts} --tokens {tokens} --output {output}"
    main(given.split())
    return output


def test_the_tokens_of_the_scripts_keep_their_embeddings(multilingual: Path) -> None:
    folder = pruned(multilingual)
    before, after = (load_tokenizer(str(each)) for each in (multilingual, folder))
    old, new = (load_transformer(str(each)) for each in (multilingual, folder))
    assert len(new.encoder.layer) == 2
    assert torch.equal(new.encoder.layer[1].output.dense.weight, old.encoder.layer[2].output.dense.weight)
    for token in ("<s>", "▁", "店", "t", "1"):
        numbers = [each.convert_tokens_to_ids(token) for each in (before, after)]
        embeddings = [model.embeddings.word_embeddings.weight[n] for model, n in zip((old, new), numbers, strict=True)]
        assert torch.equal(*embeddings)


def test_a_word_whose_token_is_left_out_is_split(multilingual: Path) -> None:
    tokenizer = load_tokenizer(str(pruned(multilingual, tokens=11)))  # お is unknown
    assert len(tokenizer) == 11
    assert tokenizer.tokenize("boat お店1") == ["▁", "b", "o", "a", "t", "▁", "お", "店", "1"]
    assert json.loads((multilingual.parent / "pruned" / "config.json").read_text())["vocab_size"] == 11


def test_the_most_probable_others_are_kept() -> None:
    vocabulary = [("<s>", 0.0), ("a", -5.0), ("ab", -3.0), ("abc", -2.0), ("жу", -1.0)]
    assert chosen_tokens(vocabulary, special=1, scripts={"LATIN"}, count=3) == [0, 1, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"tokens": 5}, "give at least as many --tokens"), ({"layers": "0 3"}, "give layers of a model")],
)
def test_what_cannot_be_pruned_is_refused(multilingual: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        pruned(multilingual, **options)  # type: ignore[arg-type]


def test_a_tokenizer_of_another_kind_is_refused(model: Path) -> None:
    with pytest.raises(SystemExit, match="only unigram models"):
        pruned(model)


def test_digits_and_punctuation_have_no_script() -> None:
    assert scripts_of("▁12,") == set()


def test_chosen_tokens_may_not_be_fewer_than_the_needed() -> None:
    with pytest.raises(InvalidInput):
        chosen_tokens([("<s>", 0.0), ("a", -1.0)], special=1, scripts={"LATIN"}, count=1)
