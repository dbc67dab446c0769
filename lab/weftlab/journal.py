# SPDX-License-Identifier: MIT OR Apache-2.0
"""A file of records that outlives its writer: one line of JSON each, only ever appended, on the disk before the next begins."""
import fcntl
import json
import os
import shutil


class Busy(Exception):
    """Another process writes this journal."""


class Journal:
    """Open an existing journal, or begin one. `records` holds what it says, this process's records included."""

    def __init__(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._open()

    def _open(self):
        self.file = open(self.path, "a+b")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.file.close()
            raise Busy(self.path) from error
        self.records = self._read()

    def _read(self):
        """All whole records. The line that a killed writer left half written is cut off."""
        self.file.seek(0)
        text = self.file.read()
        whole = text.rfind(b"\n") + 1
        self.file.truncate(whole)
        return [json.loads(line) for line in text[:whole].splitlines()]

    def append(self, record):
        self.file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())
        self.records.append(record)

    def set_aside(self):
        """Begin anew. Returns where the records of before are."""
        old = self.path.with_suffix(".old")
        self.move(old)
        self._open()
        return old

    def move(self, place):
        """The journal ends."""
        shutil.move(self.path, place)
        self.file.close()
