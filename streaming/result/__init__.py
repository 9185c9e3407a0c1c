"""What the job has written: batches, present results, their audit."""
