"""Runs in the learning process and in the server: imports a command's modules as a plain run would."""
