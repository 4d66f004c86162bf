"""What HTTP needs: problems, what routes declare, bodies read strictly, ETags."""
