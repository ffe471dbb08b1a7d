"""The parts of the demo cluster. Used by ``make_demo.py`` alone; not shipped."""
