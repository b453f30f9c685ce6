"""The commands of the command line, one module each; what is heavy is imported where it is used."""
