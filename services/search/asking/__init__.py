"""Questions: from parameters and bodies to ranked answers."""
