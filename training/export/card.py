"""The model card of a bundle: description, quality and limits.

All figures are from the manifest. Their names are defined in training.export.gates and training.export.calibration.
"""

import re
from collections.abc import Mapping

from similarity.model.manifest import Manifest

SPLITS = ("dev", "train")
TEXTS = {"plain": "plain", "prepared": "prepared", "strict": "prepared, unseen candidates"}
MEASURES = ("ece", "brier", "log_loss")
SEARCH_HEADING = "## Search of the whole corpus"
_LIMITS_HEADING = "## Limits"
_JUDGES = "- Who judged the pairs: "
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
            "two vectors says how alike two businesses are. Runs on a CPU with onnxruntime or OpenVINO.",
            "",
            "| | |",
            "|---|---|",
            f"| base model | {manifest.base_model}, licence {manifest.licence} |",
            f"| training data | {manifest.training_data} |",
            *_selection(manifest.metrics),
            f"| weights | {manifest.quantisation} |",
            f"| longest text | {manifest.max_tokens} tokens; what follows is not read |",
            f"| pooling | {manifest.pooling} over real tokens, then {manifest.normalisation} norm, inside the graph |",
            f"| opset | {manifest.opset} |",
            "",
            "## Quality",
            "",
            *_quality(manifest.metrics, reference),
            "",
            *search_section(manifest),
            _LIMITS_HEADING,
            "",
            *([f"{_JUDGES}{judged_by}"] if judged_by else []),
            "- English. Texts in other languages get a vector, but not a good one; they are flagged.",
            "- It reads words, not facts: two companies that describe themselves alike look alike.",
            "- Names and places mislead it. Prepare texts with `similarity.text.embedding_text`, as the figures show.",
            "- Thin descriptions (under 15 words) have noisy neighbours.",
            "- Vectors of another `encoder_id` cannot be compared with this one's.",
            "",
            "`manifest.json` holds all figures and the SHA-256 of every file.",
            "",
        ]
    )


def with_search_section(card: str, manifest: Manifest, *, judged_by: str = "") -> str:
    """Return the card with the section of `search_section`: it replaces an older one, or is added before the limits.

    If `judged_by` is given, it becomes the first limit.
    """
    rest = re.sub(rf"^{re.escape(SEARCH_HEADING)}\n.*?(?=^## |\Z)", "", card, flags=re.MULTILINE | re.DOTALL)
    before, heading, limits = rest.partition(f"{_LIMITS_HEADING}\n")
    if judged_by:
        limits = re.sub(rf"^{re.escape(_JUDGES)}.*\n", "", limits, flags=re.MULTILINE)
        heading, limits = f"{_LIMITS_HEADING}\n", f"\n{_JUDGES}{judged_by}\n{limits.lstrip()}"
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
    return [f"| chosen | step {step:,.0f} by its scores on selection anchors, kept out of training: {listed} |"]


def _quality(metrics: Mapping[str, float], reference: str) -> list[str]:
    splits = [split for split in SPLITS if f"{split}_ndcg10_prepared" in metrics]
    if not splits:
        return ["Not measured: exported without judged pairs (`--judged`, `--companies`)."]
    lines = [
        "Judged competitor pairs (gains 3/1/0), ranking of each anchor's own candidates by cosine. *Plain* is the "
        "description as it stands, *prepared* has own names masked and origin sentences dropped, *unseen candidates* "
        "leaves out the companies that training has seen (a smaller and easier pool: compare its rows with each "
        "other only). Brackets: 95 % over anchors.",
        "",
    ]
    beside = f"reference_{splits[0]}_ndcg10_prepared" in metrics
    header = ["split", "text", "nDCG@10", "AUC", "float32 nDCG@10"]
    header += ["reference nDCG@10", "reference AUC"] if beside else []
    lines += [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    for split in splits:
        for text, words in TEXTS.items():
            if f"{split}_ndcg10_{text}" not in metrics:
                continue
            cells = [split, words, _with_bounds(metrics, f"{split}_ndcg10_{text}")]
            cells += [_number(metrics, f"{split}_auc_{text}"), _number(metrics, f"{split}_ndcg10_{text}_float32")]
            if beside:
                cells += [_number(metrics, f"reference_{split}_{name}_{text}") for name in ("ndcg10", "auc")]
            lines.append(f"| {' | '.join(cells)} |")
    if beside:
        differences = [
            f"{split} {_with_bounds(metrics, f'{split}_ndcg10_over_reference', signed=True)}" for split in splits
        ]
        lines += ["", f"Reference: {reference}. Difference in nDCG@10 on prepared text: {', '.join(differences)}."]
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
    lines = [
        "Share of an anchor's judged competitors (dev) among its nearest companies, all "
        f"{metrics['corpus_companies']:,.0f} competing. Competitors that nobody judged do not count.",
        "",
        f"| encoder | {' | '.join(f'R@{depth}' for depth in depths)} |",
        "|" + "---|" * (len(depths) + 1),
    ]
    for name, prefix in (("this one", ""), ("reference", "reference_")):
        if f"{prefix}dev_recall{depths[0]}" in metrics:
            cells = [_with_bounds(metrics, f"{prefix}dev_recall{depth}") for depth in depths]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return [*lines, ""]


def _probability(manifest: Manifest) -> list[str]:
    metrics, mapping = manifest.metrics, manifest.calibration
    if mapping is None:
        return []
    sign = "+" if mapping.intercept >= 0 else "−"
    formula = f"P(competitor) = sigmoid({mapping.slope:.3f} · cosine {sign} {abs(mapping.intercept):.3f})"
    if "calibration_ece" not in metrics:
        return [f"{formula}. How good it is was not measured.", ""]
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
        "*ECE by chance* is what true probabilities would show on so few pairs. Companies that were served and not "
        "judged are taken to be like the judged ones of the same cosine. The chances are those of this corpus and of "
        "these judges' idea of a competitor: calibrate anew on your own (`python -m training.calibrate`).",
        "",
    ]


def _with_bounds(metrics: Mapping[str, float], name: str, *, signed: bool = False) -> str:
    form = "+.3f" if signed else ".3f"
    found = _number(metrics, name, form)
    if f"{name}_lower" not in metrics:
        return found
    return f"{found} [{metrics[f'{name}_lower']:{form}}, {metrics[f'{name}_upper']:{form}}]"


def _number(metrics: Mapping[str, float], name: str, form: str = ".3f") -> str:
    return f"{metrics[name]:{form}}" if name in metrics else ""
