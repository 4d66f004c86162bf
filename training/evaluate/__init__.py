"""How good an encoder is, measured the same way for every method.

Everything takes `Encode` (texts to unit rows) and loaded data; nothing here knows torch. The command is
`python -m training.evaluate`.

    encoding     texts to vectors           bootstrap             how sure a figure is
    ranks        AUC, Spearman              ranking, judged       order of each anchor's candidates
    pairs        is it a competitor
    corpus       recall in the whole corpus calibration, reliability   cosine to probability
    tasks, report, plots  what the command runs and writes
"""
