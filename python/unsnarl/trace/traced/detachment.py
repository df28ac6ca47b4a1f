"""The script that a process runs, through ``sys.remote_exec``, to end a recording that ``attach`` started."""

from unsnarl.trace.traced import recording

recording.detach()
