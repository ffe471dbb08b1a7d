"""The scheduling module: pods of services are added and removed in rounds. Knows no clock, no files, no network."""
