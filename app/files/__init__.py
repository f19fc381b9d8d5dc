"""Read and write files with rows of data: CSV, JSON, xlsx, Parquet."""
