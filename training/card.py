"""The model card of a bundle: what it is, how good it is, and where it fails."""

from collections.abc import Mapping

from similarity.manifest import Manifest

SPLITS = ("dev", "train")


def model_card(manifest: Manifest, *, licence: str) -> str:
    """README.md of the bundle that `manifest` describes."""
    return "\n".join(
        [
            f"# Company encoder from {manifest.base_model}",
            "",
            f"Turns a company's description into a vector of {manifest.dimension} numbers of unit norm; the cosine of "
            "two vectors says how alike two businesses are. Runs on a CPU with onnxruntime or OpenVINO.",
            "",
            "| | |",
            "|---|---|",
            f"| base model | {manifest.base_model}, licence {licence} |",
            f"| training data | {manifest.training_data} |",
            f"| weights | {manifest.quantisation} |",
            f"| longest text | {manifest.max_tokens} tokens; what follows is not read |",
            f"| pooling | {manifest.pooling} over real tokens, then {manifest.normalisation} norm, inside the graph |",
            f"| opset | {manifest.opset} |",
            "",
            "## Quality",
            "",
            *_quality(manifest.metrics),
            "",
            "## Limits",
            "",
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


def _quality(metrics: Mapping[str, float]) -> list[str]:
    splits = [split for split in SPLITS if f"{split}_ndcg10_prepared" in metrics]
    if not splits:
        return ["Not measured: exported without judged pairs (`--judged`, `--companies`)."]
    lines = [
        "Judged competitor pairs (gains 3/1/0), ranking of each anchor's own candidates by cosine. *Plain* is the "
        "description as it stands, *prepared* has own names masked and origin sentences dropped.",
        "",
        "| split | text | nDCG@10 | AUC | float32 nDCG@10 |",
        "|---|---|---|---|---|",
    ]
    for split in splits:
        for text in ("plain", "prepared"):
            float32 = metrics.get(f"{split}_ndcg10_{text}_float32")
            figures = [f"{metrics[f'{split}_{name}_{text}']:.3f}" for name in ("ndcg10", "auc")]
            lines.append(f"| {split} | {text} | {' | '.join(figures)} | {f'{float32:.3f}' if float32 else ''} |")
    lines += [
        "",
        f"Cosine to the float32 vectors of the same texts: mean {metrics['cosine_to_float32_mean']:.4f}, "
        f"lowest {metrics['cosine_to_float32_lowest']:.4f}.",
    ]
    return lines
