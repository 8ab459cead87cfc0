"""What is made ready before a run, and before a case: experiments that belong to no study."""
