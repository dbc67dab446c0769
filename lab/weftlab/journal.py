# SPDX-License-Identifier: MIT OR Apache-2.0
"""A file of records that outlives its writer: one line of JSON each, only appended, and synced before the next record begins."""
import fcntl
import json
import os
import shutil


class Busy(Exception):
    """Another process writes this journal."""


class Journal:
    """Opens an existing journal, or begins a new journal. `records` also holds the records that this process appends."""

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
        """Reads all complete records, and cuts off a line that a killed writer left incomplete."""
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
        """Begins anew. Returns the path of the old records."""
        old = self.path.with_suffix(".old")
        self.move(old)
        self._open()
        return old

    def move(self, place):
        """Ends the journal, and moves it to `place`."""
        shutil.move(self.path, place)
        self.file.close()
