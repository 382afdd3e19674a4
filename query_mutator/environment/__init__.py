"""What happens in an episode, and what the policy sees of it."""
