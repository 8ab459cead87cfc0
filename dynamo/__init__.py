"""How a model is captured and compiled: backends, capture statistics, accuracy, torch state."""
