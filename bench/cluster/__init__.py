"""Primitives between machines against their peers, in one run.

    scripts/cluster-servers python -m bench.cluster        # some six minutes; writes to bench/results
    python -m bench.cluster.page                           # renders docs/results/cluster.md

Needs `unsnarl-cluster`, `redis`, `python-redis-lock`, `etcd3gw` and `psycopg[binary]` in the environment.
"""
