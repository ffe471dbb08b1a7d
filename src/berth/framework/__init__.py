"""What a plugin is, and what a profile makes of plugins. Knows no plugin and no release."""
