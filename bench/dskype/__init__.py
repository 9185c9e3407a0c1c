"""Run the experiments of skype.txt section 8.2: the distributed system."""
