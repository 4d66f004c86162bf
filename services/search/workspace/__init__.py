"""Routes and services of verdicts, of the pairs made from them, and of saved lists."""
