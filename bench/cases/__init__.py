"""Cases that people have reported elsewhere, each written anew from its description, stock and with unsnarl."""
