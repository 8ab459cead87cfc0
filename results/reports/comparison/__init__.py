"""A comparison of two runs as text and as Markdown; its JSON is the value itself."""
