"""Files of rows, written and read: csv, JSON, xlsx, Parquet."""
