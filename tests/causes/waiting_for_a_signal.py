"""The main thread waits for a signal, which a timer sends."""

# first: waiting for a signal in `until_told`
# quiet
import os, signal, threading
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
def until_told():
    signal.sigwait({signal.SIGUSR1})
threading.Timer(0.6, os.kill, (os.getpid(), signal.SIGUSR1)).start()
until_told()
