"""Compares the speed of the encoder with sentence-transformers: same weights, threads and texts.

    pip install 'sentence-transformers[onnx,openvino]<6' nncf datasets openvino
    python -m benchmarks.encoder
    python -m benchmarks.encoder --companies companies.jsonl.gz --judged FOLDER --json encoder.json

Without `--model`, the peers' weights are read back from the bundle (`training.model.restore`). All contenders
take turns in one process: each round gives the next slice of texts to every contender, in a new order, so that
other work on the machine affects all of them. The table shows medians over the rounds, and our speed relative
to each peer with a 95 % bootstrap interval over the rounds. Peers run with their documented settings and the
fastest of four batch sizes. Peers that are not installed are named and left out.
"""

import argparse
import json
import os
import platform
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from similarity.bundle import ModelBundle, seed_folder
from similarity.encoder import TextEncoder, available_threads
from similarity.errors import SimilarityError
from similarity.generations.relevance_labels import read_relevance_labels
from similarity.text import embedding_text
from training.evaluate.encoding import Encode
from training.evaluate.judged import judged_split, judged_texts, read_companies
from training.evaluate.ranking import rank

SAMPLE = Path("data/sample/companies.jsonl")
MAX_CORPUS = 6_000
OURS = ("ours, onnxruntime", "ours, openvino")
# The promises of the project: the least lower end of the interval of (ours) / (peer).
TARGETS = {
    ("ours, onnxruntime", "sentence-transformers, torch float32"): 2.0,
    ("ours, best", "sentence-transformers, torch bfloat16"): 1.1,
    ("ours, best", "sentence-transformers, best int8"): 1.1,
}
AMX_TARGET = {("ours, openvino", "sentence-transformers, torch float32"): 3.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One contender. `texts_per_second` is its median; `seconds`: its time in each round."""

    name: str
    texts_per_second: float
    seconds: list[float]
    ndcg: float | None
    cosine_to_float32: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """The speed of `ours` divided by the speed of `peer`: median over rounds, 95 % interval, and the promise."""

    ours: str
    peer: str
    median: float
    low: float
    high: float
    target: float | None


def take_turns(
    contenders: dict[str, Encode], texts: Sequence[str], *, rounds: int, size: int
) -> dict[str, list[float]]:
    """Return the seconds of each contender in each round; every round takes the next `size` texts."""
    order = list(contenders)
    shuffle = random.Random(0)
    seconds: dict[str, list[float]] = {name: [] for name in order}
    for turn in range(rounds):
        batch = [texts[(turn * size + position) % len(texts)] for position in range(size)]
        shuffle.shuffle(order)
        for name in order:
            start = perf_counter()
            contenders[name](batch)
            seconds[name].append(perf_counter() - start)
    return seconds


def ratio(seconds: dict[str, list[float]], ours: str, peer: str, target: float | None) -> Ratio:
    """Return the median of the rounds' ratios, with a bootstrap interval over rounds."""
    ratios = np.array(seconds[peer]) / np.array(seconds[ours])
    draws = np.random.default_rng(0).integers(len(ratios), size=(10_000, len(ratios)))
    low, high = np.quantile(np.median(ratios[draws], axis=1), [0.025, 0.975])
    return Ratio(ours=ours, peer=peer, median=float(np.median(ratios)), low=float(low), high=float(high), target=target)


def our_encoders(bundle: ModelBundle, threads: int) -> dict[str, Encode]:
    """Return the bundle's encoder on each runtime that is installed."""
    encoders: dict[str, Encode] = {OURS[0]: TextEncoder(bundle, threads).encode}
    try:
        encoders[OURS[1]] = TextEncoder(bundle, threads, "openvino").encode
    except SimilarityError as error:
        print(f"left out: {OURS[1]} ({error})")
    return encoders


def compare(seconds: dict[str, list[float]]) -> list[Ratio]:
    """Return the ratios of our runtimes to every peer, then the promised ratios. "best": the fastest by median."""
    ours = [name for name in seconds if name in OURS]
    peers = [name for name in seconds if name not in OURS]
    int8 = [name for name in peers if "int8" in name]
    named = dict(seconds)
    named["ours, best"] = named[min(ours, key=lambda name: float(np.median(seconds[name])))]
    if int8:
        best = min(int8, key=lambda name: float(np.median(seconds[name])))
        named["sentence-transformers, best int8"] = named[best]
    targets = TARGETS | (AMX_TARGET if "amx_tile" in cpu_flags() else {})
    ratios = [ratio(seconds, mine, peer, None) for mine in ours for peer in peers]
    return ratios + [
        ratio(named, mine, peer, target) for (mine, peer), target in targets.items() if mine in named and peer in named
    ]


def cpu_flags() -> set[str]:
    """Return the processor's features as Linux names them; empty on other systems."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    return {flag for line in lines if line.startswith("flags") for flag in line.split(":")[1].split()}


def machine(threads: int) -> dict[str, object]:
    """Return the processor, instructions, threads, load and Python version that the figures depend on."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    interesting = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_tile", "amx_int8", "amx_bf16")
    return {
        "processor": models[0] if models else platform.processor(),
        "instructions": [flag for flag in interesting if flag in cpu_flags()],
        "threads": threads,
        "load_at_start": os.getloadavg()[0],
        "python": platform.python_version(),
    }


def ranking_quality(encode: Encode, options: argparse.Namespace, bundle: ModelBundle) -> float | None:
    """Return nDCG@10 on the judged development pairs with prepared texts; None without the pairs."""
    if options.judged is None:
        return None
    judgements = read_relevance_labels(judged_split(options.judged, "dev"))
    texts = judged_texts(options.companies, judgements, bundle.manifest.text_settings)
    return float(rank(encode, judgements, texts).ndcg.mean())


def mean_cosine(vectors: NDArray[np.float32], reference: NDArray[np.float32]) -> float:
    """Return the mean cosine of matching rows; bfloat16 rows are not exactly of unit norm."""
    products = np.einsum("nd,nd->n", vectors, reference)
    return float((products / np.linalg.norm(vectors, axis=1) / np.linalg.norm(reference, axis=1)).mean())


def show(rows: Sequence[Row], ratios: Sequence[Ratio]) -> None:
    print(f"\n{'contender':52}{'texts/s':>9}{'nDCG@10':>9}{'cosine':>9}")
    for row in sorted(rows, key=lambda row: -row.texts_per_second):
        quality = f"{row.ndcg:.4f}" if row.ndcg is not None else "-"
        print(f"{row.name:52}{row.texts_per_second:9.1f}{quality:>9}{row.cosine_to_float32:9.4f}")
    print(f"\n{'faster than':72}{'times':>7}{'95 % interval':>17}{'promise':>12}")
    for item in ratios:
        promise = ""
        if item.target is not None:
            promise = f"{item.target:.1f} {'kept' if item.low >= item.target else 'MISSED'}"
        label = f"{item.ours} / {item.peer}"
        print(f"{label:72}{item.median:7.2f}{item.low:9.2f} - {item.high:.2f}{promise:>13}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Speed and quality of the encoder beside its peers.")
    parser.add_argument("--companies", type=Path, default=SAMPLE, help=f"JSONL file (default: {SAMPLE})")
    parser.add_argument("--judged", type=Path, help="folder of judged pairs, for ranking quality")
    parser.add_argument("--bundle", type=Path, help="folder of the bundle (default: the one that ships)")
    parser.add_argument("--model", help="the peers' model: id, folder or package (default: the bundle's own weights)")
    parser.add_argument("--cache", type=Path, default=Path(".cache/encoder-peers"), help="where peers keep exports")
    parser.add_argument("--texts", type=int, default=600, help="number of texts in a round")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--peers", choices=["all", "none"], default="all")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args(arguments)
    # Set before any tokenizer starts its thread pool: these threads count as the contender's too.
    os.environ["RAYON_NUM_THREADS"] = str(options.threads)

    bundle = ModelBundle.load(options.bundle or seed_folder())
    companies = list(read_companies(options.companies))
    random.Random(0).shuffle(companies)
    texts = [embedding_text(company, bundle.manifest.text_settings) for company in companies[:MAX_CORPUS]]
    facts = machine(options.threads)
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    print(f"{len(texts):,} texts, {options.rounds} rounds of {options.texts}, {bundle.manifest.max_tokens} tokens")

    contenders = our_encoders(bundle, options.threads)
    if options.peers == "all":
        from benchmarks.encoder_peers import peers

        model = options.model or str(bundle.folder)
        # Each model has its own exports.
        cache = options.cache / Path(model).name
        contenders |= peers(model, cache, texts, threads=options.threads, max_tokens=bundle.manifest.max_tokens)
    first = texts[: min(200, len(texts))]
    vectors = {name: encode(first) for name, encode in contenders.items()}
    reference = vectors.get("sentence-transformers, torch float32", vectors[OURS[0]])
    seconds = take_turns(contenders, texts, rounds=options.rounds, size=options.texts)
    rows = [
        Row(
            name=name,
            texts_per_second=options.texts / float(np.median(seconds[name])),
            seconds=seconds[name],
            ndcg=ranking_quality(encode, options, bundle),
            cosine_to_float32=mean_cosine(vectors[name], reference),
        )
        for name, encode in contenders.items()
    ]
    ratios = compare(seconds)
    show(rows, ratios)
    if options.json:
        figures = {"machine": facts, "rows": [asdict(row) for row in rows], "ratios": [asdict(item) for item in ratios]}
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
