"""Which plugins, order, weights and wording a release has."""
