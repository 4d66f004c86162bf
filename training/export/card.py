"""The model card of a bundle: description, quality and limits.

All figures are from the manifest. Their names are defined in training.export.gates and training.calibrate.
"""

import re
from collections.abc import Mapping

from similarity.model.manifest import Manifest

TEXTS = {"plain": "plain", "prepared": "prepared", "strict": "prepared, unseen candidates"}
MEASURES = ("ece", "brier", "log_loss")
SEARCH_HEADING = "## Search of the whole corpus"
_LIMITS_HEADING = "## Limits"
_SELECTION = "selection_"


def model_card(manifest: Manifest, *, reference: str = "", judged_by: str = "") -> str:
    """Return the README.md of the bundle that `manifest` describes.

    `reference` describes the bundle it is compared with; `judged_by` says who judged the pairs and how.
    """
    return "\n".join(
        [
            f"# Company encoder from {manifest.base_model}",
            "",
            f"Turns a company's description into a vector of {manifest.dimension} numbers of unit norm; the cosine of "
            "two vectors measures how similar two businesses are. Runs on a CPU with onnxruntime or OpenVINO.",
            "",
            "| | |",
            "|---|---|",
            f"| base model | {manifest.base_model}, licence {manifest.licence} |",
            f"| training data | {manifest.training_data} |",
            *_selection(manifest.metrics),
            f"| weights | {manifest.quantisation} |",
            f"| longest text | {manifest.max_tokens} tokens; longer texts are truncated |",
            f"| pooling | {manifest.pooling} over tokens, then {manifest.normalisation} norm, inside the graph |",
            f"| opset | {manifest.opset} |",
            "",
            "## Quality",
            "",
            *_quality(manifest.metrics, reference),
            "",
            _LIMITS_HEADING,
            "",
            *([f"- Who judged the pairs: {judged_by}"] if judged_by else []),
            "- `similarity info` lists the languages that it reads; texts in others have poor vectors and are flagged.",
            "- It compares words, not facts: companies with similar descriptions have similar vectors.",
            "- Names and places mislead it. Prepare texts with `similarity.text.embedding_text`; the figures show why.",
            "- Short descriptions (under 15 words) have noisy neighbours.",
            "- Its vectors cannot be compared with those of another `encoder_id`.",
            "",
            "`manifest.json` contains all figures and the SHA-256 of every file.",
            "",
        ]
    )


def with_search_section(card: str, manifest: Manifest) -> str:
    """Return the card with the section of `search_section`: it replaces an older one, or is added before the limits."""
    rest = re.sub(rf"^{re.escape(SEARCH_HEADING)}\n.*?(?=^## |\Z)", "", card, flags=re.MULTILINE | re.DOTALL)
    before, heading, limits = rest.partition(f"{_LIMITS_HEADING}\n")
    parts = (before, "\n".join(search_section(manifest)), heading + limits)
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def search_section(manifest: Manifest) -> list[str]:
    """Return the lines on recall in the whole corpus and on calibration; empty if neither was measured."""
    found = [*_recall(manifest.metrics), *_probability(manifest)]
    return [SEARCH_HEADING, "", *found] if found else []


def _selection(metrics: Mapping[str, float]) -> list[str]:
    scores = {name: value for name, value in metrics.items() if name.startswith(_SELECTION)}
    step = scores.pop(f"{_SELECTION}step", None)
    if step is None:
        return []
    listed = ", ".join(f"{name.removeprefix(_SELECTION)} {value:.3f}" for name, value in scores.items())
    return [f"| chosen | step {step:,.0f} by its scores on selection anchors, which were not trained on: {listed} |"]


def _quality(metrics: Mapping[str, float], reference: str) -> list[str]:
    if "dev_ndcg10_prepared" not in metrics:
        return ["Not measured: exported without judged pairs (`--judged`, `--companies`)."]
    beside = "reference_dev_ndcg10_prepared" in metrics
    header = ["text", "nDCG@10", "AUC", "float32 nDCG@10", *(["reference nDCG@10", "reference AUC"] if beside else [])]
    lines = [
        "Judged competitor pairs (dev; gains 3/1/0): each anchor's own candidates are ranked by cosine. *Plain* is the "
        "unchanged description; *prepared* has own names masked and origin sentences removed; *unseen candidates* "
        "omits the companies that were in the training data (a smaller and easier pool: compare its figures only with "
        "each other). Brackets: 95 % intervals over anchors.",
        "",
        f"| {' | '.join(header)} |",
        "|" + "---|" * len(header),
    ]
    for text, words in TEXTS.items():
        if f"dev_ndcg10_{text}" not in metrics:
            continue
        cells = [words, _with_bounds(metrics, f"dev_ndcg10_{text}")]
        cells += [_number(metrics, f"dev_auc_{text}"), _number(metrics, f"dev_ndcg10_{text}_float32")]
        if beside:
            cells += [_number(metrics, f"reference_dev_{name}_{text}") for name in ("ndcg10", "auc")]
        lines.append(f"| {' | '.join(cells)} |")
    if beside:
        difference = _with_bounds(metrics, "dev_ndcg10_over_reference", form="+.3f")
        lines += ["", f"Reference: {reference}. Difference in nDCG@10 on prepared text: {difference}."]
    if "cosine_to_float32_mean" in metrics:
        lines += [
            "",
            f"Cosine to the float32 vectors of the same texts: mean {metrics['cosine_to_float32_mean']:.4f}, "
            f"lowest {metrics['cosine_to_float32_lowest']:.4f}.",
        ]
    return lines


def _recall(metrics: Mapping[str, float]) -> list[str]:
    depths = [depth for depth in (10, 50, 100) if f"dev_recall{depth}" in metrics]
    if not depths:
        return []
    return [
        "Share of an anchor's judged competitors (dev) among its nearest companies, all "
        f"{metrics['corpus_companies']:,.0f} competing. Competitors that nobody judged do not count.",
        "",
        f"| {' | '.join(f'R@{depth}' for depth in depths)} |",
        "|" + "---|" * len(depths),
        f"| {' | '.join(_with_bounds(metrics, f'dev_recall{depth}') for depth in depths)} |",
        "",
    ]


def _probability(manifest: Manifest) -> list[str]:
    metrics, mapping = manifest.metrics, manifest.calibration
    if mapping is None:
        return []
    sign = "+" if mapping.intercept >= 0 else "−"
    formula = f"P(competitor) = sigmoid({mapping.slope:.3f} · cosine {sign} {abs(mapping.intercept):.3f})"
    lines = [
        f"{formula}, for the companies nearest to an anchor. Fitted on {metrics['calibration_anchors']:,.0f} anchors "
        f"that were not trained on: {metrics['calibration_pairs']:,.0f} of the "
        f"{metrics['calibration_served']:,.0f} pairs that a search of the corpus returns for them were judged.",
        "",
        "| measured on | ECE | ECE by chance | Brier | log loss |",
        "|---|---|---|---|---|",
    ]
    for words, prefix in (("anchors left out of the fit", "calibration"), ("dev", "dev_calibration")):
        if f"{prefix}_ece" in metrics:
            ece, chance = _number(metrics, f"{prefix}_ece"), _number(metrics, f"{prefix}_ece_chance")
            brier, loss = (_with_bounds(metrics, f"{prefix}_{measure}") for measure in ("brier", "log_loss"))
            lines.append(f"| {words} | {ece} | {chance} | {brier} | {loss} |")
    return [
        *lines,
        "",
        "*ECE by chance* is the expected ECE of perfect probabilities on a sample of this size. Hits that were not "
        "judged are assumed to be like judged hits of the same cosine. The probabilities depend on this corpus and on "
        "these judges: calibrate again on your own data (`python -m training.calibrate`).",
        "",
    ]


def _with_bounds(metrics: Mapping[str, float], name: str, form: str = ".3f") -> str:
    return f"{metrics[name]:{form}} [{metrics[f'{name}_lower']:{form}}, {metrics[f'{name}_upper']:{form}}]"


def _number(metrics: Mapping[str, float], name: str) -> str:
    return f"{metrics[name]:.3f}" if name in metrics else ""
