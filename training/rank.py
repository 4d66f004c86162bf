"""Fits the second stage of a search (`similarity.model.ranker`) from judged pairs, and from lists of peers.

    python -m training.rank --bundle models/<id> --index companies.db --judged train.tsv --dev dev.tsv
    python -m training.rank ... --peers peers.tsv     (also fits *comparable*; columns: anchor, candidate, votes)

The index holds the judged companies with their facts and the vectors of this bundle. The bundle keeps its vectors and
its `encoder_id`, and gets a new `bundle_id`; an index takes the ranker from it with
`similarity generations reembed --bundle models/<id> --without-gate`, which copies the vectors and encodes nothing.

**Corpora of several sizes.** Each anchor is seen in the whole corpus, and in corpora in which only a share of the other
companies is left. Its competitors stay, as they do in a corpus that somebody has put together for a market. So the fit
learns how the density of a neighbourhood changes what a cosine means (`pair_features.sparsity`).

Verdicts of the service's users are such pairs too: `--judged` takes the file that `similarity pairs` writes.
"""

import argparse
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

try:
    from scipy.optimize import minimize
    from scipy.special import expit
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "python -m training.rank needs scipy: pip install scipy, or make .venv/training"
    ) from error

from similarity.bundle import ModelBundle, write_manifest
from similarity.errors import InvalidInput, SimilarityError
from similarity.generations.gate import MAX_LOSS, MIN_ANCHORS
from similarity.generations.relevance_labels import COMPETITOR, ndcg, read_relevance_labels
from similarity.index.opening import open_index
from similarity.model.ranker import ENGLISH, ComparableWeights, Ranker
from similarity.search.reranking.pair_features import PairFeatures
from similarity.search.reranking.rank import Rank
from similarity.search.reranking.scores import business_logits, density, logits
from training.console import refusing, say
from training.data.ranking_pairs import (
    FactCorpus,
    JudgedAnchor,
    components,
    judged_anchors,
    peer_candidates,
    read_fact_corpus,
    read_peers,
    unlabelled_candidates,
)
from training.evaluate.bootstrap import Interval, paired_difference, with_bounds
from training.evaluate.ranks import auc
from training.evaluate.reliability import calibration_error
from training.export.publishing import publish
from training.options import SEVERAL
from training.run.trained_run import copy_listed_companies, listed_companies

Floats: TypeAlias = NDArray[np.float64]
BUSINESS = ("cosine", "shared_words", "same_industry", "sparsity")
COMPARABLE = ("business", "size_gap", "size_unknown", "same_country")
FALLING = frozenset({"size_gap", "size_unknown"})
SHARES = (1.0, 0.3, 0.1, 0.03)
"""Shares of the corpus in which each anchor is seen."""
FACTS_KEPT = 0.55
"""The share of the fitted weights of facts that *comparable* keeps. Peers are listed for large companies mostly; with
lower weights, a list is nearer to what the companies do."""
PENALTY = 1e-4
PRIOR = 0.05
"""The assumed share of competitors among candidates that nobody judged."""


class RankerRefused(SimilarityError):
    """The fitted weights order judged candidates worse than the weights of the bundle, or than the cosine."""


def fit_business(
    anchors: Sequence[JudgedAnchor],
    unlabelled: Sequence[PairFeatures] = (),
    *,
    encoder_id: str,
    unlabelled_weight: float = 0.0,
) -> Ranker:
    """Return the weights of the reading *business* with the lowest risk; no weight has the wrong sign.

    `unlabelled`: features of candidates that nobody judged; `unlabelled_weight`: the weight of their risk.
    """
    matrix = np.concatenate([_matrix(each.features, BUSINESS) for each in anchors])
    competitor = np.concatenate([each.grades for each in anchors]) == COMPETITOR
    unknown = np.concatenate([_matrix(each, BUSINESS) for each in unlabelled]) if unlabelled else None
    weights, intercept = fit_logistic(
        matrix, competitor, rising=[True, True, True, True], unlabelled=unknown, unlabelled_weight=unlabelled_weight
    )
    return Ranker(encoder_id=encoder_id, intercept=intercept, **dict(zip(BUSINESS, weights, strict=True)))


def fit_comparable(
    corpus: FactCorpus, peers: Mapping[str, frozenset[str]], ranker: Ranker, judged: Sequence[JudgedAnchor]
) -> Ranker:
    """Return `ranker` with the weights of *comparable* that tell listed peers from the other candidates.

    Slope and intercept are then fitted on `judged`, anchors in the whole corpus, so that the result is the probability
    of a competitor.

    Raises:
        InvalidInput: no anchor has a listed peer among its candidates.
    """
    found = [peer_candidates(corpus, anchor) for anchor in peers if anchor in corpus.row_of]
    matrices = [_comparable_matrix(features, ranker) for _, features in found]
    listed = [
        np.array([each in peers[anchor] for each in ids])
        for anchor, (ids, _) in zip([each for each in peers if each in corpus.row_of], found, strict=True)
    ]
    if not any(each.any() for each in listed):
        raise InvalidInput("no listed peer is among its anchor's candidates; use the ids of the index in --peers")
    rising = [name not in FALLING for name in COMPARABLE]
    weights, _ = fit_logistic(np.concatenate(matrices), np.concatenate(listed), rising=rising)
    weights[1:] *= FACTS_KEPT
    scores = np.concatenate([_comparable_matrix(each.features, ranker) @ weights for each in judged])
    competitor = np.concatenate([each.grades for each in judged]) == COMPETITOR
    [slope], intercept = fit_logistic(scores[:, None], competitor, rising=[True])
    named = dict(zip(COMPARABLE, weights.tolist(), strict=True))
    return replace(ranker, comparable=ComparableWeights(**named, slope=slope, intercept=intercept))


def peers_out_of_fold(corpus: FactCorpus, peers: Mapping[str, frozenset[str]], ranker: Ranker) -> dict[str, float]:
    """Return recall and reciprocal rank of *comparable*, each anchor ranked by weights fitted without its component.

    A component holds the companies that chains of peers connect. recall@10 divides by min(10, peers).
    """
    known = [anchor for anchor in peers if anchor in corpus.row_of]
    found = {anchor: peer_candidates(corpus, anchor) for anchor in known}
    matrices = {anchor: _comparable_matrix(features, ranker) for anchor, (_, features) in found.items()}
    listed = {anchor: np.array([each in peers[anchor] for each in ids]) for anchor, (ids, _) in found.items()}
    component = components(peers)
    rising = [name not in FALLING for name in COMPARABLE]
    measures = []
    for held_out in sorted({component[anchor] for anchor in known}):
        others = [anchor for anchor in known if component[anchor] != held_out]
        weights, _ = fit_logistic(
            np.concatenate([matrices[each] for each in others]),
            np.concatenate([listed[each] for each in others]),
            rising=rising,
        )
        weights[1:] *= FACTS_KEPT
        for anchor in (each for each in known if component[each] == held_out):
            hits = listed[anchor][np.argsort(-(matrices[anchor] @ weights), kind="stable")]
            first = np.flatnonzero(hits)
            count = len(peers[anchor])
            measures.append(
                (hits[:10].sum() / min(10, count), hits[:50].sum() / count, 1 / (first[0] + 1) if len(first) else 0)
            )
    names = ("ranker_peers_recall10", "ranker_peers_recall50", "ranker_peers_mrr")
    return dict(zip(names, np.mean(measures, axis=0).tolist(), strict=True))


def fit_logistic(
    matrix: Floats,
    positive: NDArray[np.bool_],
    *,
    rising: Sequence[bool],
    unlabelled: Floats | None = None,
    unlabelled_weight: float = 0.0,
) -> tuple[Floats, float]:
    """Return the weights `[features]` and the intercept of a logistic regression whose weights have the given signs.

    A small L2 penalty on the standardised weights keeps them finite. The risk of `unlabelled` pairs, as in PAUSE
    (non-negative: Kiryo et al. 2017, https://arxiv.org/abs/1703.00593), has the weight `unlabelled_weight`.

    Raises:
        InvalidInput: all pairs are of one kind.
    """
    if positive.all() or not positive.any():
        raise InvalidInput("the pairs are all of one kind; give competitors and others")
    scale = matrix.std(axis=0) + 1e-9
    design = np.column_stack([matrix / scale, np.ones(len(matrix))])
    unknown = None if unlabelled is None else np.column_stack([unlabelled / scale, np.ones(len(unlabelled))])

    def loss(parameters: Floats) -> tuple[float, Floats]:
        logit = design @ parameters
        penalised = np.append(parameters[:-1], 0.0)
        value = np.mean(np.logaddexp(0, logit) - positive * logit) + PENALTY * float(penalised @ penalised)
        gradient = design.T @ (expit(logit) - positive) / len(positive) + 2 * PENALTY * penalised
        risk, risk_gradient = _unlabelled_risk(parameters, design[positive], unknown)
        return float(value + unlabelled_weight * risk), gradient + unlabelled_weight * risk_gradient

    bounds = [(0, None) if up else (None, 0) for up in rising] + [(None, None)]
    found = minimize(loss, np.zeros(design.shape[1]), jac=True, bounds=bounds, method="L-BFGS-B").x
    return found[:-1] / scale, float(found[-1])


def _unlabelled_risk(parameters: Floats, positives: Floats, unlabelled: Floats | None) -> tuple[float, Floats]:
    """Return PU risk and gradient: PRIOR E+[l(+)] + max(0, Eu[l(-)] - PRIOR E+[l(-)]), with the logistic loss l."""
    if unlabelled is None or not len(unlabelled):
        return 0.0, np.zeros_like(parameters)
    logit, unknown = positives @ parameters, unlabelled @ parameters
    negative = np.logaddexp(0, unknown).mean() - PRIOR * np.logaddexp(0, logit).mean()
    risk = PRIOR * np.logaddexp(0, -logit).mean()
    gradient = -PRIOR * positives.T @ (1 - expit(logit)) / len(positives)
    if negative > 0:
        risk += negative
        gradient = gradient + unlabelled.T @ expit(unknown) / len(unlabelled)
        gradient = gradient - PRIOR * positives.T @ expit(logit) / len(positives)
    return float(risk), gradient


def measured(ranker: Ranker, anchors: Sequence[JudgedAnchor]) -> dict[str, float]:
    """Return nDCG@10, its gain over the cosine, AUC and calibration error of *business*.

    If `ranker` has weights of *comparable*, also return the calibration error of that reading.
    """
    predicted = [business_logits(ranker, each.features) for each in anchors]
    ours = np.array([ndcg(each, anchor.grades) for each, anchor in zip(predicted, anchors, strict=True)])
    cosine = np.array([ndcg(each.features.cosine, each.grades) for each in anchors])
    competitor = np.concatenate([each.grades for each in anchors]) == COMPETITOR
    probability = expit(np.concatenate(predicted))
    difference: Interval = paired_difference(ours, cosine)
    return {
        "ranker_ndcg10": float(ours.mean()),
        **with_bounds("ranker_ndcg10_over_cosine", difference),
        "ranker_auc": auc(probability, competitor),
        "ranker_auc_cosine": auc(np.concatenate([each.features.cosine for each in anchors]), competitor),
        "ranker_ece": calibration_error(probability, competitor, np.ones(len(probability))),
        **_comparable_error(ranker, anchors, competitor),
    }


def require_no_worse(ranker: Ranker, before: Ranker | None, anchors: Sequence[JudgedAnchor]) -> None:
    """Check that `ranker` orders judged candidates as well as `before`, or as the cosine if there is none.

    Raises:
        RankerRefused: its nDCG@10 may be lower by more than MAX_LOSS (lower bound of the paired difference), as
            in the gate of encoders.
    """

    def of_anchors(each: Ranker | None) -> Floats:
        scores = [business_logits(each, a.features) if each else a.features.cosine for a in anchors]
        return np.array([ndcg(found, a.grades) for found, a in zip(scores, anchors, strict=True)])

    new, old = of_anchors(ranker), of_anchors(before)
    lower = paired_difference(new, old).lower
    if lower < -MAX_LOSS:
        raise RankerRefused(
            f"the new weights have nDCG@10 {new.mean():.4f}, and the bundle's {old.mean():.4f}; the difference may be "
            f"{lower:+.4f}, under the limit of {-MAX_LOSS:+.4f}; give more judged pairs, or --without-gate"
        )


def _comparable_error(
    ranker: Ranker, anchors: Sequence[JudgedAnchor], competitor: NDArray[np.bool_]
) -> dict[str, float]:
    if ranker.comparable is None:
        return {}
    probability = expit(np.concatenate([logits(ranker, each.features, Rank.COMPARABLE) for each in anchors]))
    return {"ranker_comparable_ece": calibration_error(probability, competitor, np.ones(len(probability)))}


def with_ranker(bundle: ModelBundle, ranker: Ranker, metrics: Mapping[str, float], folder: Path) -> ModelBundle:
    """Write `bundle` with this ranker and its figures to `folder`, which may be its own."""
    others = {name: value for name, value in bundle.manifest.metrics.items() if not name.startswith("ranker_")}
    with tempfile.TemporaryDirectory() as drafts:
        draft = Path(drafts) / bundle.encoder_id
        shutil.copytree(bundle.folder, draft)
        write_manifest(draft, replace(bundle.manifest, ranker=ranker, metrics={**others, **metrics}))
        return publish(draft, folder)


def _matrix(features: PairFeatures, names: Sequence[str]) -> Floats:
    return np.column_stack([getattr(features, name) for name in names])


def _comparable_matrix(features: PairFeatures, ranker: Ranker) -> Floats:
    facts = density(features)[:, None] * _matrix(features, COMPARABLE[1:])
    return np.column_stack([business_logits(ranker, features), facts])


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options, fit, measure, write the bundle, and print the weights."""
    options = _parser().parse_args(arguments)
    with refusing():
        bundle = ModelBundle.load(options.bundle)
        with closing(open_index(options.index)) as index:
            corpus = read_fact_corpus(index, encoder_id=bundle.encoder_id)
        judgements = read_relevance_labels(options.judged)
        judged = judged_anchors(corpus, judgements, shares=SHARES, seed=options.seed)
        if not judged:
            raise InvalidInput(f"the index holds no pair of {options.judged}; pass the index with its companies")
        if known := judgements.keys() & listed_companies(options.bundle):
            say(f"warning: the bundle was trained on {len(known)} of these companies: probabilities will be too high")
        if len(judgements) < MIN_ANCHORS and not options.dev:
            say(f"warning: {len(judgements)} judged companies are few: judge {MIN_ANCHORS}, and measure with --dev")
        weight = options.unlabelled_weight
        unlabelled = unlabelled_candidates(corpus, judgements) if weight else []
        ranker = fit_business(judged, unlabelled, encoder_id=bundle.encoder_id, unlabelled_weight=weight)
        before = bundle.manifest.ranker
        languages = options.languages or (before.languages if before else ENGLISH)
        ranker = replace(ranker, languages=tuple(languages))
        if options.peers:
            ranker = fit_comparable(corpus, read_peers(options.peers), ranker, judged_anchors(corpus, judgements))
        metrics = {"ranker_pairs": float(sum(len(each.grades) for each in judged))}
        if options.peers:
            with closing(open_index(options.peers_index or options.index)) as index:
                pool = read_fact_corpus(index, encoder_id=bundle.encoder_id)
            metrics |= peers_out_of_fold(pool, read_peers(options.peers), ranker)
        if options.dev:
            dev = judged_anchors(corpus, read_relevance_labels(options.dev))
            metrics |= measured(ranker, dev)
            if not options.without_gate:
                require_no_worse(ranker, before, dev)
        folder = options.output / bundle.encoder_id if options.output else options.bundle
        written = with_ranker(bundle, ranker, metrics, folder)
        copy_listed_companies(options.bundle, to=written.folder)
        for name, value in (*_weights(ranker), *metrics.items()):
            say(f"{name:32} {value:9.4f}")
        say(f"{written.folder}: encoder {written.encoder_id} as before, bundle {written.bundle_id}")


def _weights(ranker: Ranker) -> list[tuple[str, float]]:
    named = [(name, float(getattr(ranker, name))) for name in (*BUSINESS, "intercept")]
    if weights := ranker.comparable:
        named += [(f"comparable.{name}", getattr(weights, name)) for name in (*COMPARABLE, "slope", "intercept")]
    return named


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.rank", description="Fit the second stage of a search.")
    add = parser.add_argument
    add("--bundle", type=Path, required=True, help="folder of the bundle; it is replaced unless --output is given")
    add("--index", required=True, help="index with this bundle's vectors of the judged companies (a file or a URL)")
    add("--judged", type=Path, required=True, help="judged pairs to fit on: anchor, candidate, grade")
    add("--peers", type=Path, help="lists of peers, for the reading comparable: anchor, candidate, votes")
    add("--peers-index", help="index to measure lists of peers in, out of fold (default: --index)")
    add("--dev", type=Path, help="judged pairs of other anchors, on which new weights may not be worse than before")
    add("--unlabelled-weight", type=float, default=0.0, help="weight of the risk of candidates that nobody judged (0)")
    add("--without-gate", action="store_true", help="write weights that are worse on --dev than the bundle's")
    languages = "ISO 639 codes of the languages that the encoder reads (default: those of the bundle, or en)"
    add("--languages", **SEVERAL, help=languages)
    add("--seed", type=int, default=0, help="seed of the random corpora (default: 0)")
    add("--output", type=Path, help="folder in which to write the folder of the bundle (default: replace the bundle)")
    return parser


if __name__ == "__main__":
    main()
