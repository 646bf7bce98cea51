"""Parts: settings as frozen dataclasses, tables of them by name, and their help texts."""
