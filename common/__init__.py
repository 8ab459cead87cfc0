"""How a case is run: command line, plan, runner, executors, worker and experiments."""
