"""Draw pictures of the dashboard and of `nearcast top` from the metrics of a demo."""
