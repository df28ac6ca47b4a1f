"""``unsnarl trace``: record a program, conclude where its time went, and show it.

``traced`` runs in the traced process; ``running`` starts that process, or attaches to it, and waits;
``recordings`` reads the files into ``model``; ``findings`` draws conclusions, one module per subject;
``views`` shows them, one format each; ``report`` writes all of it.
"""
