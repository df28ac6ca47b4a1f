"""A matrix of worlds: programs, run without and with unsnarl, on an idle machine and on five kinds of crowded ones.

The promise is "never worse than without it". The other measurements of this project were made
on an idle machine; these look for the losses elsewhere. `world` says what else the machine does,
`plan` says what is measured, `runner` carries out one run, `verdict` judges, `page` renders.
"""
