"""Numbers that a network in torch and the same one in numpy have in common."""

MOST_DEVIATIONS = 6.0
"""Features are clipped to so many deviations from their mean, so that a problem far outside the
training range does not run away."""
APART_FLOOR, APART_SHIFT = 1e-3, 3.0
"""How far the members of a head are apart goes to the doubt as log(apart + floor) + shift."""
LEAST_DOUBT, MOST_DOUBT = -6.0, 0.5
"""Of the logarithm of a deviation."""
MOST_LOG_RATIO = 12.0
"""Predicted times are kept this close to the roofline."""
