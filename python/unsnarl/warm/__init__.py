"""Warm start: an already imported, forked process for any Python command.

Two kinds of files live here. Those that run inside *the command's own*
interpreter (``launch`` and what it imports: ``probe``, ``lookups``, ``values``, ``temporary``,
``holders``, ``preload``, ``server``, ``spare``, ``worker``, ``streams``, ``signals``, ``limits``, ``leave``,
``hooked``, ``watch``, ``wire``, ``facts``)
import nothing of unsnarl but their siblings, and of the standard library only
what is built in or tiny: every module they load is one that the command would
see. The others (``begin``, ``shims``, ``house``, ``sweep``) run in unsnarl's interpreter.
"""
