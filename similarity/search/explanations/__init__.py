"""Why a hit is a hit: shared facts, and the phrases with the largest effect."""
