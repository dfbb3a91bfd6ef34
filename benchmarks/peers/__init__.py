"""memprov beside other programs, on copies of the same store in the same run."""
