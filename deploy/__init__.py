"""How the software is packed and run: lock files, images, cluster."""
