"""The command that measures: asks whoever listens at a socket, and ends as that says."""

import json
import socket
import sys

with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    server.sendall(json.dumps(sys.argv[2:]).encode() + b"\n")
    raise SystemExit(int(server.recv(16) or b"1"))
