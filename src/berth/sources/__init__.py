"""Where things are read from and written to: snapshots, forecasts, loads, profiles, scenarios and cases."""
