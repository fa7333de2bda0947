"""Holdfast by itself: what has no peer."""
