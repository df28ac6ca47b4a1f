"""The part of the recorder that runs in the traced process, under the rules of ``_unsnarl_boot``."""
