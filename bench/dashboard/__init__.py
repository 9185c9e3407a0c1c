"""Pictures of what operators see, drawn from a demo's own metrics."""
