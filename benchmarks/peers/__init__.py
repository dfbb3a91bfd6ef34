"""memprov beside the programs that do the same job, in the same run, on copies of the same store."""
