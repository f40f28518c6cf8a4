"""The methods, one folder each, always with the same rooms (see README: how to add a method)."""
