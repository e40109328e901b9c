"""The named cases of the comparison, by area of the client protocol."""
