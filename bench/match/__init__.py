"""Find the subscriptions that a new object affects: subscription indexes and general structures."""
