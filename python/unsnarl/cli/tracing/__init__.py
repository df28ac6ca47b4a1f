"""The parts of ``unsnarl trace`` beyond the verb itself: its command line, and recording a running process."""
