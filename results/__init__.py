"""What is known: values, statistics, the store and the sinks. Never imports torch."""
