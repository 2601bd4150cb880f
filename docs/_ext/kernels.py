"""Kernels of the notebooks: each a process of its own, forked from one that has imported what all of them import.

A kernel that starts from nothing spends two seconds on imports. Here Jupyter starts a small program instead, which asks
for a fork at the socket ``door`` and ends when the kernel does.
"""

import gc
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

IMPORTED = (
    "IPython.core.completerlib",
    "IPython.core.pylabtools",
    "IPython.extensions.storemagic",
    "ipykernel.debugger",
    "ipykernel.kernelapp",
    "ipykernel.zmqshell",
    "jsonschema",
    "matplotlib.pyplot",
    "pandas",
    "ppdp.audit",
    "ppdp.datasets",
    "ppdp.mechanisms",
    "ppdp.pipeline",
    "ppdp.plot",
    "ppdp.transformers",
    "scipy.stats",
    "sklearn.compose",
    "sklearn.ensemble",
    "sklearn.frozen",
    "sklearn.impute",
    "sklearn.linear_model",
    "sklearn.model_selection",
    "sklearn.random_projection",
    "sqlite3",
)
ASK = r"""import os, socket, sys
asked = socket.socket(socket.AF_UNIX)
asked.connect(sys.argv[1])
asked.sendall(f"{os.getcwd()}\n{sys.argv[2]}".encode())
asked.recv(1)
"""


def wait(door: socket.socket) -> None:
    """Fork for everybody who asks, until the process that builds the site has ended."""
    os.environ |= {"MPLBACKEND": "module://matplotlib_inline.backend_inline", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    for name in IMPORTED:
        import_module(name)
    # What a cell has drawn is drawn when it is shown, and need not be at the end of the cell as well.
    sys.modules["matplotlib.pyplot"].install_repl_displayhook = lambda: None
    gc.freeze()
    forked = []
    while sys.stdin not in select.select([door, sys.stdin], [], [])[0]:
        asked, _ = door.accept()
        forked.append(os.fork())
        if forked[-1] == 0:
            return run(asked)
        asked.close()
    for kernel in forked:
        os.waitpid(kernel, 0)


def run(asked: socket.socket) -> None:
    """Be a kernel, until told to end or whoever asked has ended."""
    import numpy as np
    from ipykernel.kernelapp import IPKernelApp

    from ppdp.privacy.ledger import fit_charging as fits

    fits._FORKED.clear()  # the process before it has fitted nothing, and this is nobody's worker
    folder, connection = asked.recv(8192).decode().split("\n")
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    np.random.seed()  # noqa: NPY002  the one of its own that every process has
    threading.Thread(target=lambda: asked.recv(1) or os._exit(1), daemon=True).start()
    IPKernelApp.launch_instance(["-f", connection], parent_handle=os.getppid())


def start(app: Any) -> None:
    """Start the process that forks, and tell Jupyter how to ask it."""
    folder = tempfile.TemporaryDirectory()  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(f"{folder.name}/door")
        door.listen()
        served = [sys.executable, "-P", __file__, str(door.fileno())]
        server = subprocess.Popen(served, stdin=subprocess.PIPE, pass_fds=[door.fileno()])
    spec = Path(folder.name) / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = [sys.executable, "-I", "-S", "-c", ASK, f"{folder.name}/door", "{connection_file}"]
    told = {"argv": argv, "display_name": "Python 3", "language": "python", "interrupt_mode": "message"}
    spec.write_text(json.dumps(told), "utf-8")
    os.environ["JUPYTER_PATH"] = folder.name

    def end(app: Any, error: Exception | None) -> None:
        server.communicate()
        folder.cleanup()

    app.connect("build-finished", end)


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", start, priority=100)  # imports while the gallery is drawn
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    wait(socket.socket(fileno=int(sys.argv[1])))
