"""What several tests share: worlds small enough to hold in one hand."""
