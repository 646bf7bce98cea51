"""The page of `umdqn view`: a server that reads run directories, and what the browser shows."""
