"""Tables: layout, schema evolution, staging, and the table formats Parquet, Delta Lake and Iceberg."""
