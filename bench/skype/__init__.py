"""Sliding windows over subscriptions that stand: the experiments of skype.txt, section 8.1."""
