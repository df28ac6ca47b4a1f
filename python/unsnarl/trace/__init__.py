"""``unsnarl trace``: record a program, find out where its time went, and show it.

``recording`` runs in the traced process, before its first line; ``supervisor`` starts
that process and waits for it; ``recordings`` reads what was recorded into ``model``;
``findings`` draws conclusions; and the modules of ``views`` show them, one format each.
"""
