"""Who is affected by a new object: subscription indexes beside what one would take instead."""
