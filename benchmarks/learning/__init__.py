"""How fast policies learn: the product's PPO, Stable-Baselines3's, and bandits, side by side."""
