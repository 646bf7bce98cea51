"""Agents: parts put together into `init / act / learn`, and the table of algorithms."""
