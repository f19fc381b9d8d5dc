"""Send reports and alerts by mail, webhook or chat."""
