"""Names of the leases for changes of generations."""

REEMBED = "reembed"
"""Name of the lease for filling, promoting or removing a candidate: one process at a time."""
RETIRE = "retire"
"""Name of the lease for removing a generation that was live: each removal reads which names the others still have."""
