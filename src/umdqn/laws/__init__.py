"""Laws of the random return: what a law is, what it can answer, and its Bellman push-forward."""
