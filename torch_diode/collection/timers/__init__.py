"""Timers, one per kind of device."""
