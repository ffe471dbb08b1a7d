"""One ``berth.yaml`` and the environment: read, checked, all mistakes at once."""

from berth.config.load import load_settings
from berth.config.mistakes import ConfigError, ConfigMistake
from berth.config.settings import Settings

__all__ = ["ConfigError", "ConfigMistake", "Settings", "load_settings"]
