"""A program waits for packets of UDP at its own address, and nobody sends any."""

# first: waiting for packets at 127.0.0.1:
# quiet
import socket
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("127.0.0.1", 0))
receiver.settimeout(1.5)
try:
    receiver.recvfrom(100)
except TimeoutError:
    pass
