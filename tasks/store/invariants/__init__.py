"""The promises of the loop, each proved from the tables: what `tasks.store.verify` asks one after another."""
