"""The implementation of the `naru` command: run, devices, doctor, coverage, bench and others, one file each."""
