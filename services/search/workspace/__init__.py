"""What people add: verdicts, the pairs they make, saved lists."""
