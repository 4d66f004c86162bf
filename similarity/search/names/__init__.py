"""Companies by their names: comparison of names, the resolver of references, matching of lists, suggestions."""
