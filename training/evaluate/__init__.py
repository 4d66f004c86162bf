"""Evaluates encoders, all by the same measures.

Functions take an `Encode` (texts to unit vectors) and loaded data; none imports torch. The command is
`python -m training.evaluate`.

    encoding                  texts to vectors           bootstrap         confidence intervals over anchors
    ranks                     AUC, Spearman              ranking, judged   ranking of each anchor's candidates
    corpus                    recall in the whole corpus pairs             classification of pairs
    calibration, reliability  cosine to probability      tasks, report, plots   the evaluations, tables and plots
"""
