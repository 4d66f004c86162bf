"""One search: question in, ranking out. The library, the command line and the service all call `Searcher`."""
