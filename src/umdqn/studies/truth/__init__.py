"""The study of truth: laws of finite MDPs against the exact ones, at a discount of 0.99."""
