"""Making of the network that recognises voices: its sources, its teacher and its student."""
