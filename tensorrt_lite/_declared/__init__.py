"""What the rows of operators say at run time: schemas, signatures, overloads, help."""
