"""Predicates and priorities, one module each or a family of the same rule. No plugin knows another."""
