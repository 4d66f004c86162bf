"""What docker-compose.yml describes, running: in containers, or as processes of this machine."""
