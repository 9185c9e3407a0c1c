"""Commands of `nearcast simulate`: what else is done with simulations."""
