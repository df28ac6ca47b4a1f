"""A server that pauses shortly for each request does not poll."""

# first: sleeping in `serve`
# not: polling
import socket, threading, time
def serve(connection):
    while connection.recv(9):
        time.sleep(0.003)
        connection.sendall(b"done")
near, far = socket.socketpair()
server = threading.Thread(target=serve, args=(near,), name="server")
server.start()
for _ in range(300):
    far.sendall(b"ask")
    far.recv(9)
far.close()
server.join()
