# SPDX-License-Identifier: Apache-2.0
"""Types into an interactive shell, as a person does: type_keys.py SHELL SETUP KEYS WANTED

Starts bash or zsh in a terminal of its own without start-up files, runs SETUP, types KEYS (`\\t` is the tab key), and waits
for the terminal to show WANTED, blanks counted as one. Exits with a sentence if it does not. With the standard library
alone."""
import os
import pty
import re
import select
import sys
import time

START = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}
LIMIT = 60  # seconds; all of them only where the test fails


def clean(seen):
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|[\x07\r]", "", seen.decode(errors="replace"))
    return re.sub(r"\s+", " ", text)


def wait(terminal, wanted):
    """Reads until a text has come."""
    seen, end = b"", time.monotonic() + LIMIT
    while wanted not in clean(seen):
        if not select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
            raise SystemExit(f"{wanted!r} did not come; the terminal shows {clean(seen)!r}")
        try:
            more = os.read(terminal, 65536)
        except OSError:
            more = b""
        if not more:
            raise SystemExit(f"the shell went away; the terminal showed {clean(seen)!r}")
        seen += more


def main(shell, setup, keys, wanted):
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="dumb", LC_ALL="C", COLUMNS="100", LINES="40")
        os.execvp(START[shell][0], START[shell])
    variable = "PS1" if shell == "bash" else "RPROMPT=; PROMPT"
    os.write(terminal, f"{setup}\n{variable}='REA''DY> '\n".encode())  # the echo of this line has no READY
    wait(terminal, "READY> ")
    for part in re.findall(r"\t|[^\t]+", keys.encode().decode("unicode_escape")):
        os.write(terminal, part.encode())
        time.sleep(0.2)  # two tabs at once are no answer to what the first one did
    wait(terminal, wanted)
    os.write(terminal, b"\x03exit\n")
    os.close(terminal)
    os.waitpid(child, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
