"""The jobs of the loop. Each loads facts, lets a strategy decide, and applies the decision. Both runners use them."""
