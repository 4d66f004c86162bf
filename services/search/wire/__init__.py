"""Parts of HTTP: problems, declarations of routes, strict reading of bodies, ETags."""
