"""What a process runs, by ``sys.remote_exec``, to end the recording that ``attach`` had it begin."""

from unsnarl.trace.traced import recording

recording.detach()
