"""Runs other projects' own tests plainly and with unsnarl, and names each test whose outcome differs."""
