"""What is asked: the question, its companies, and the query vector."""
