"""The durable request queue, the record of rounds, and the embedded cluster's state."""
