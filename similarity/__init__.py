"""Find the companies that compete with a given company, from what companies say about themselves."""
