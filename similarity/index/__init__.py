"""The company index: one protocol, `CompanyIndex`, with an SQLite and an Elasticsearch implementation."""
