"""The pages of a release: one for everybody, one for the custodian."""
