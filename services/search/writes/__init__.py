"""Changes of companies: writes, bulk uploads, erasures. Code that runs after each write belongs in `group_commit`.

A write goes from `write_routes` to `write_service`, which checks it, then to `group_commit`, whose thread writes it to
one of `destinations`: the index, or Kafka.
"""
