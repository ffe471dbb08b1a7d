"""The start page: one self-contained HTML text."""

from berth.service.running import Service


def render(service: Service) -> str:
    """Return the page as HTML."""
    del service
    return "<!doctype html><title>Berth</title>"
