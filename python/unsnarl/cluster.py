"""Primitives between machines: the public name of the distribution ``unsnarl-cluster``.

It is a distribution of its own, with an extension module of its own, so that ``unsnarl`` itself neither grows nor
loads an async runtime. Never imported by ``import unsnarl``.
"""

try:
    from unsnarl_cluster import *
except ModuleNotFoundError as error:
    if error.name != "unsnarl_cluster":
        raise
    raise ModuleNotFoundError(
        "unsnarl.cluster is not installed (hint: pip install 'unsnarl[cluster]')", name="unsnarl_cluster"
    ) from None
