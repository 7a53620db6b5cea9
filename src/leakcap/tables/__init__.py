"""From a CSV or Parquet file to what `leakcap.plan` takes: columns, units, questions, and a column of labels."""
