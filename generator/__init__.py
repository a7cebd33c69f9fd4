"""Emits mmt4d tile functions as C++ intrinsics, at build time."""
