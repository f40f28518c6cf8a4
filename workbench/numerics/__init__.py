"""Numerics that two or more methods share; methods never import each other."""
