"""Studies of other routes to composition than more data and weights: more stages, the same stage again, learning to learn."""
