"""Where things are read from: snapshot files, forecasts, loads, profiles."""
