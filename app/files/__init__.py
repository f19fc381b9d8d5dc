"""Read and write files of rows: CSV, JSON, xlsx, Parquet."""
