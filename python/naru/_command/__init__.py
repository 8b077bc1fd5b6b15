"""What the command `naru` does, one file each: run, devices and doctor, coverage, bench."""
