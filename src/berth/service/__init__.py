"""The HTTP service, and what puts it together from settings. Importing this package alone pulls in no web framework."""
