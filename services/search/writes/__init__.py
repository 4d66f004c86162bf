"""Companies in: writes, bulk, erasure. What follows a write, such as a webhook, begins in `group_commit`.

A write goes from `write_routes` to `write_service`, which checks it, then to `group_commit`, whose thread writes it to
one of `destinations`: the index, or Kafka.
"""
