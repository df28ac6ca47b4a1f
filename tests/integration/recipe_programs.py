"""The small applications that the servers and clusters of the recipes run: each tells whether the scheduler is in."""

STATE = "import unsnarl.gil\nstate = lambda: str(unsnarl.gil.installed()).encode()\n"
FILES = {
    "state.py": STATE,
    "app.py": """
from state import state
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [state()]
""",
    "asgi.py": """
from state import state
async def application(scope, receive, send):
    if scope["type"] != "http":
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": state()})
""",
    "manage.py": """
import sys
from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpResponse
from django.urls import path
from state import state
settings.configure(DEBUG=True, ROOT_URLCONF=__name__, SECRET_KEY="x", ALLOWED_HOSTS=["*"])
urlpatterns = [path("", lambda request: HttpResponse(state()))]
if __name__ == "__main__":
    execute_from_command_line(sys.argv)
""",
    "tasks.py": """
import os
from celery import Celery
from state import state
os.makedirs("queue", exist_ok=True)
app = Celery("tasks", broker="filesystem://")
app.conf.broker_transport_options = {
    "data_folder_in": "queue", "data_folder_out": "queue", "control_folder": "queue", "processed_folder": "queue",
}
@app.task
def note():
    with open("noted.new", "wb") as file:
        file.write(state())
    os.rename("noted.new", "noted")
""",
    "scheduled.py": """
import unsnarl.gil
unsnarl.gil.install()
from app import application
""",
    "preload.py": "import unsnarl.gil\nunsnarl.gil.install()\n",
    "cluster.py": """
from dask.distributed import Client, LocalCluster
from state import state
if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None) as cluster, Client(cluster) as client:
        assert (state(), client.submit(state).result(timeout=60)) == (b"True", b"True")
""",
    "submit.py": """
import sys
from dask.distributed import Client
from state import state
with Client(sys.argv[1], timeout=60) as client:
    client.wait_for_workers(1, timeout=60)
    assert client.submit(state).result(timeout=60) == b"True"
    if sys.argv[2:]:
        (worker,) = client.scheduler_info()["workers"]
        assert worker.startswith(f"tcp://{sys.argv[2]}:"), worker
""",
    "actors.py": """
import ray
from state import state
if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False)
    assert (state(), ray.get(ray.remote(state).remote(), timeout=120)) == (b"True", b"True")
""",
    "attached.py": """
import ray
from state import state
ray.init(address="auto")
assert (state(), ray.get(ray.remote(state).remote(), timeout=120)) == (b"False", b"True")
""",
    "dags/nightly.py": """
import os
from datetime import timedelta
from airflow.sdk import dag, task
from state import state
@dag(dag_id="nightly", schedule="@once", is_paused_upon_creation=False)
def nightly():
    @task(retries=60, retry_delay=timedelta(seconds=1))  # the API may not be up at the first attempt
    def note():
        with open(os.environ["NOTED"] + ".new", "wb") as file:
            file.write(state())
        os.rename(os.environ["NOTED"] + ".new", os.environ["NOTED"])
    note()
nightly()
""",
    "handler.py": """
import boto3
def handler(event, context):
    return [event["number"] + 1, context.aws_request_id, type(boto3.__spec__.loader).__module__]
""",
    "notebook.ipynb": """
{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
 {"cell_type": "code", "id": "a", "metadata": {}, "execution_count": null, "outputs": [],
  "source": "from state import state; assert state() == b'True'; open('noted', 'w').close()"}]}
""",
    "test_it.py": "from state import state\ndef test_it():\n    assert state() == b'True'\n",
}

GATED = """
from state import state
def application(environ, start_response):
    if environ["PATH_INFO"] == "/gate":
        open("gate").read()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [state() + b" again"]
"""
"""The application in a later version: `/gate` is answered when somebody closes the other end of the pipe."""
