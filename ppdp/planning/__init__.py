"""From stages and public facts to a plan: ways, routes, one budget solve."""
