"""Where companies and their vectors are kept: one protocol, several stores."""
