"""Warm start: an already imported, forked process for any Python command.

One folder a process:

| folder | runs in |
|---|---|
| this one: ``launch``, ``facts``, ``renewals``, ``wire`` | each of them |
| ``learning`` | the learning process |
| ``importing`` | the learning process and the server |
| ``serving`` | the server |
| ``worker`` | the forked worker |
| ``managing`` | unsnarl's own interpreter |

All but ``managing`` run in *the command's own* interpreter, where ``launch`` gives this package the name
``_unsnarl_warm``. They import nothing of unsnarl but each other, and of the standard library only what is
built in or tiny: every module they load is one that the command would see.
"""
