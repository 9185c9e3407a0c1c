"""The output of the job: batches, present results, and their audit."""
