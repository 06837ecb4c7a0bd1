# Distances between the rows of matrices.
