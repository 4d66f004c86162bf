"""The command line: each command parses options, calls one function and prints what it returns."""
