"""Measure sliding windows over stationary subscriptions: the experiments of skype.txt, section 8.1."""
