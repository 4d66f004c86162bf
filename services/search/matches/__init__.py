"""Lists of names and websites to companies."""
