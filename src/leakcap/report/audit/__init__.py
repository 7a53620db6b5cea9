"""The page of an audit."""
